import { describe, expect, it } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { HeadgateError, InvalidArgumentError } from './errors.ts'
import { createLimiter, type LimiterOptions } from './limiter.ts'
import { MAX_PARTS } from './part.ts'
import { memoryStore } from './stores/memory.ts'

const limit = tokenBucket({ limit: 5, period: '1h' })
const store = memoryStore()

describe('a bad option of createLimiter', () => {
  const good = { name: 'bad-options', store, limit }
  const cases: [string, unknown, string][] = [
    ['nothing', undefined, 'createLimiter'],
    ['null', null, 'createLimiter'],
    ['a list', [good], 'createLimiter'],
    ['a misspelt option', { ...good, limts: {} }, 'createLimiter.limts'],
    ['no name', { store, limit }, 'name'],
    ['an empty name', { ...good, name: '' }, 'name'],
    ['a name with a colon', { ...good, name: 'a:b' }, 'name'],
    ['a name that is too long', { ...good, name: 'x'.repeat(65) }, 'name'],
    ['no store', { name: 'a', limit }, 'store'],
    ['a client for a store', { ...good, store: { get: () => null } }, 'store'],
    ['neither limit nor limits', { name: 'a', store }, 'limits'],
    ['both limit and limits', { ...good, limits: { a: limit } }, 'limits'],
    ['no limits in limits', { name: 'a', store, limits: {} }, 'limits'],
    ['text for limits', { name: 'a', store, limits: 'a' }, 'limits'],
    [
      'too many limits',
      {
        name: 'a',
        store,
        limits: Object.fromEntries(Array.from({ length: MAX_PARTS + 1 }, (_, i) => [`l${i}`, limit])),
      },
      'limits',
    ],
    ['a number for a limit', { name: 'a', store, limit: 5 }, 'limit'],
    ['null for a limit', { name: 'a', store, limit: null }, 'limit'],
    ['the options of a limit', { name: 'a', store, limits: { user: { limit: 5, period: '1s' } } }, 'limits.user'],
    ['a limit name with a colon', { name: 'a', store, limits: { 'a:b': limit } }, 'limits.a:b'],
    ['a misspelt policy', { ...good, onStoreFailure: 'close' }, 'onStoreFailure'],
    ['null for a policy', { ...good, onStoreFailure: null }, 'onStoreFailure'],
    ['text for a time-out', { ...good, timeoutMs: '50' }, 'timeoutMs'],
    ['no instances', { ...good, instances: 0 }, 'instances'],
    ['an unknown accuracy', { ...good, accuracy: 'roughly' }, 'accuracy'],
  ]
  it.each(cases)('%s is refused by its name', (_, options, argument) => {
    const create = () => createLimiter(options as LimiterOptions)
    expect(create).toThrow(InvalidArgumentError)
    expect(create).toThrow(new RegExp(`^${argument}: `))
  })

  it('says how many limits are not as many as they may be', () => {
    expect(() => createLimiter({ name: 'a', store, limits: {} })).toThrow('limits: an object with 0 is not')
  })

  it('leaves the name free where it was refused', () => {
    expect(() => createLimiter({ ...good, instances: 0 })).toThrow()
    expect(() => createLimiter({ ...good, limit: tokenBucket({ limit: 9, period: '1s' }) })).not.toThrow()
  })
})

describe('a limiter of one limit', () => {
  it('takes one key; what is no string is refused, never counted as its text (spring-cloud-gateway#624)', async () => {
    const limiter = createLimiter({ name: 'single', store, limit })
    expect((await limiter.check('ann')).limits).toMatchObject([{ name: 'single', remaining: 4 }])
    expect((await limiter.check('')).allowed).toBe(true)
    for (const key of [undefined, null, 42, { single: 'ann' }, ['ann'], Symbol('ann')]) {
      for (const call of ['check', 'peek', 'reset'] as const) {
        await expect(limiter[call](key as never)).rejects.toMatchObject({ argument: 'key' })
      }
    }
    expect((await limiter.peek('undefined')).limits[0]?.remaining).toBe(5)
    await limiter.close()
  })
})

describe('a limiter of several limits', () => {
  const limits = { global: limit, account: fixedWindow({ limit: 3, period: '365d' }) }

  it('takes a key for each; an absent or unknown name is refused, and nothing is charged', async () => {
    const limiter = createLimiter({ name: 'several', store, limits })
    expect((await limiter.check({ global: '', account: 'ann' })).limits).toMatchObject([
      { rule: 'several', name: 'global', remaining: 4 },
      { rule: 'several', name: 'account', remaining: 2 },
    ])
    const bad: [unknown, string][] = [
      [undefined, 'keys'],
      [null, 'keys'],
      ['ann', 'keys'],
      [{ global: '' }, 'keys.account'],
      [{ global: '', account: null }, 'keys.account'],
      [{ global: '', account: 'ann', acount: 'ann' }, 'keys.acount'],
      [{ global: '', account: 'ann', toString: 'ann' }, 'keys.toString'],
      [['', 'ann'], 'keys.global'],
    ]
    for (const [keys, argument] of bad) {
      for (const call of ['check', 'peek', 'reset'] as const) {
        await expect(limiter[call](keys as never)).rejects.toMatchObject({ argument })
      }
    }
    const { limits: left } = await limiter.peek({ global: '', account: 'ann' })
    expect(left.map(({ remaining }) => remaining)).toEqual([4, 2])
    await limiter.close()
  })

  it('charges the same cost everywhere, or nothing', async () => {
    const limiter = createLimiter({ name: 'costly', store, limits })
    const keys = { global: '', account: 'ann' }
    expect((await limiter.check(keys, { cost: 2 })).limits.map(({ remaining }) => remaining)).toEqual([3, 1])
    expect(await limiter.check(keys, { cost: 2 })).toMatchObject({
      allowed: false,
      rule: 'costly',
      limitedBy: 'account',
    })
    expect((await limiter.check(keys)).limits.map(({ remaining }) => remaining)).toEqual([2, 0])
    for (const cost of [-1, 0.5, Number.NaN, '2', null]) {
      await expect(limiter.check(keys, { cost } as never)).rejects.toMatchObject({ argument: 'cost' })
    }
    await expect(limiter.check(keys, 2 as never)).rejects.toMatchObject({ argument: 'options' })
    await limiter.reset(keys)
    expect((await limiter.peek(keys)).limits.map(({ remaining }) => remaining)).toEqual([5, 3])
    await limiter.close()
  })

  it('never shares a counter with a limiter of one limit, whatever the names and keys', async () => {
    const one = createLimiter({ name: 'n', store, limit })
    const many = createLimiter({ name: 'other', store, limits: { n: limit } })
    const same = createLimiter({ name: 'n.x', store, limits: { a: limit } })
    await Promise.all([many.check({ n: 'a' }), same.check({ a: '' })])
    for (const key of ['a', 'n:a', 'a:', ':', 'x:a:', '.x:a:']) {
      expect((await one.peek(key)).limits[0]?.remaining).toBe(5)
    }
    await Promise.all([one, many, same].map((limiter) => limiter.close()))
  })
})

describe('the name of a limiter', () => {
  it('belongs to the numbers that it was first used with on a store, until its last owner closes', async () => {
    const first = createLimiter({ name: 'owned', store, limit })
    const second = createLimiter({ name: 'owned', store, limit: tokenBucket({ limit: 5, period: '60m' }) })
    const conflicting = () => createLimiter({ name: 'owned', store, limit: tokenBucket({ limit: 6, period: '1h' }) })
    expect(conflicting).toThrow(HeadgateError)
    expect(conflicting).toThrow(/^name: "owned" is used on this store with other limits; close that limiter first/)
    await first.close()
    await first.close()
    expect(conflicting).toThrow(HeadgateError)
    await second.close()
    expect(conflicting).not.toThrow()
    expect(() => createLimiter({ name: 'owned', store: memoryStore(), limit })).not.toThrow()
  })

  it('belongs to one scope and one beginning too: counters elsewhere, or begun otherwise, are other budgets', async () => {
    const shared = createLimiter({ name: 'scoped', store, limit })
    const numbers = { limit: 5, period: '1h' } as const
    for (const other of [
      tokenBucket({ ...numbers, scope: 'instance' }),
      tokenBucket({ ...numbers, initial: 'empty' }),
    ]) {
      expect(() => createLimiter({ name: 'scoped', store, limit: other })).toThrow(
        expect.objectContaining({ code: 'HEADGATE_NAME_CONFLICT' }),
      )
    }
    const again = createLimiter({ name: 'scoped', store, limit: tokenBucket({ ...numbers, initial: 'full' }) })
    await Promise.all([shared.close(), again.close()])
  })

  it('is not freed by a limiter of the same name on another store', async () => {
    const here = createLimiter({ name: 'twice', store, limit })
    const there = createLimiter({ name: 'twice', store: memoryStore(), limit: fixedWindow({ limit: 1, period: '1s' }) })
    await there.close()
    expect(() => createLimiter({ name: 'twice', store, limit: tokenBucket({ limit: 6, period: '1h' }) })).toThrow(
      HeadgateError,
    )
    await here.close()
  })
})

it('a closed limiter rejects, and leaves its store to others', async () => {
  const limiter = createLimiter({ name: 'closing', store, limit })
  await limiter.check('ann')
  await limiter.close()
  for (const call of ['check', 'peek', 'reset'] as const) {
    await expect(limiter[call]('ann')).rejects.toMatchObject({ code: 'HEADGATE_CLOSED' })
  }
  const next = createLimiter({ name: 'closing', store, limit })
  expect((await next.peek('ann')).limits[0]?.remaining).toBe(4)
  await next.close()
})
