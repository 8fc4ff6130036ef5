import { Redis } from 'ioredis-5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createEngine, type Engine } from './engine.ts'
import type { Limit } from './limit.ts'
import type { CheckItem } from './part.ts'
import type { Store } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { type FakeClock, fakeClock, redisStoreOnClock } from './testing/index.ts'

let server: RedisServer
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

const tenPerSecond = tokenBucket({ limit: 10, period: '1s' })
const hourly = tokenBucket({ limit: 10, period: '1h' })
const window = fixedWindow({ limit: 10, period: '10s' })
const line = leakyBucket({ limit: 10, period: '1s', queue: 9 })
const log = slidingLog({ limit: 10, period: '10s' })
const item = (limit: Limit, cost = 1, key = 'ann', name: string = limit.algorithm): CheckItem[] => [
  { rule: 'ops', name, limit, key, cost },
]
const remaining = async (engine: Engine, items: CheckItem[]) =>
  (await engine.peek(items.map((one) => ({ ...one, cost: 0 })))).limits.map((status) => status.remaining)

describe.each(['memory', 'redis'] as const)('on the %s store', (kind) => {
  let clock: FakeClock
  let engine: Engine
  /** Another process: on Redis a store and a connection of its own. */
  let other: Engine
  const open: (Engine | Store)[] = []

  beforeEach(async () => {
    clock = fakeClock()
    await redis.flushall()
    const stores =
      kind === 'memory'
        ? [memoryStore({ clock })]
        : [1, 2].map(() => redisStoreOnClock(new Redis(server.url, { lazyConnect: true }), clock))
    const engines = [stores[0], stores[1] ?? stores[0]].map((store) =>
      createEngine({ store: store as Store, timeoutMs: 10_000 }),
    )
    ;[engine, other] = engines as [Engine, Engine]
    open.push(...engines, ...stores)
  })

  afterEach(async () => {
    for (const one of open.splice(0)) await one.close()
  })

  it.each([tenPerSecond, window, line, log])(
    'gives back by a receipt, all of it unless a cost is named: $algorithm',
    async (limit) => {
      const { receipt } = await engine.check(item(limit, 5))
      expect(await remaining(engine, item(limit))).toEqual([5])
      expect(
        await other.refund([{ ...item(limit)[0], cost: undefined } as CheckItem], { receipt: receipt as string }),
      ).toEqual([5])
      expect(await remaining(engine, item(limit))).toEqual([10])
    },
  )

  it('raises remaining from 0, and never above full (envoyproxy/ratelimit PR#802)', async () => {
    const { receipt } = await engine.check(item(tenPerSecond, 10))
    expect(await remaining(engine, item(tenPerSecond))).toEqual([0])
    expect(await engine.refund(item(tenPerSecond, 4), { receipt: receipt as string })).toEqual([4])
    expect(await remaining(engine, item(tenPerSecond))).toEqual([4])
    expect(await engine.refund(item(tenPerSecond, 1_000_000))).toEqual([6])
    expect(await remaining(engine, item(tenPerSecond))).toEqual([10])
  })

  it('counts a receipt once that comes in parts, however late', async () => {
    const slow = tokenBucket({ limit: 1, period: '1s', burst: 5 })
    const { receipt = '' } = await engine.check(item(slow, 3))
    clock.advance(2500)
    await engine.check(item(slow, 1))
    // Half a unit of the first has not drained; the second is not its to give.
    for (let i = 0; i < 3; i++) await engine.refund(item(slow, 1), { receipt })
    expect((await engine.peek(item(slow, 4))).allowed).toBe(true)
    expect((await engine.peek(item(slow, 5))).allowed).toBe(false)
  })

  it('gives a refund once under its id, also when all ask at once (express-rate-limit PR#108)', async () => {
    const { receipt = '' } = await engine.check(item(hourly, 4))
    await engine.check(item(hourly, 4))
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        (i % 2 ? engine : other).refund(item(hourly, 4), { receipt, id: 'order 7' }),
      ),
    )
    expect(answers.flat().toSorted()).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 4])
    expect(await remaining(engine, item(hourly))).toEqual([6])
  })

  it('gives nothing of a charge back to other keys', async () => {
    const { receipt = '' } = await engine.check(item(hourly, 4, 'ann'))
    await engine.check(item(hourly, 4, 'bob'))
    await expect(engine.refund(item(hourly, 4, 'bob'), { receipt })).rejects.toThrow(/^receipt: .*other keys/)
    expect(await remaining(engine, item(hourly, 1, 'bob'))).toEqual([6])
  })

  it('takes a reservation once under its id, also when all ask at once, and settles it in any process', async () => {
    const options = { id: 'job 1', holdMs: 60_000 }
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 ? engine : other).reserve(item(hourly, 4), options)),
    )
    expect(answers.every(({ allowed, receipt }) => allowed && receipt === undefined)).toBe(true)
    expect(await remaining(engine, item(hourly))).toEqual([6])
    await other.reservation(item(hourly, 4), 'job 1').commit(1)
    expect(await answers[0]?.reservation?.commit(1)).toEqual({ late: false, unpaid: false })
    expect(await answers[1]?.reservation?.extend(1000)).toBe(false)
    expect(await remaining(engine, item(hourly))).toEqual([9])
  })

  it('charges a late commit once, though its answer was lost and it is sent again', async () => {
    const { reservation } = await engine.reserve(item(hourly, 4), { holdMs: 1000 })
    clock.advance(1001)
    expect(await reservation?.commit(4)).toEqual({ late: true, unpaid: false })
    clock.advance(30_000)
    await reservation?.commit(4)
    expect(await remaining(engine, item(hourly))).toEqual([6])
  })

  it('knows a repeated commit also when the hold would have lapsed in between', async () => {
    const { reservation } = await engine.reserve(item(hourly, 4), { holdMs: 1000 })
    clock.advance(999)
    await reservation?.commit(4)
    clock.advance(2)
    await reservation?.commit(4)
    expect(await remaining(engine, item(hourly))).toEqual([6])
  })

  it('charges an unknown id anew, and cancels it without a charge', async () => {
    expect(await engine.reservation(item(hourly, 3), 'nobody').cancel()).toEqual({ late: true, unpaid: false })
    expect(await remaining(engine, item(hourly))).toEqual([10])
    expect(await engine.reservation(item(hourly, 3), 'somebody').commit()).toEqual({ late: true, unpaid: false })
    expect(await remaining(engine, item(hourly))).toEqual([7])
  })

  it('keeps a debt to one full budget, and says what is beyond it, also in a late commit', async () => {
    const { reservation } = await engine.reserve(item(hourly, 10), { holdMs: 1000 })
    expect(await reservation?.commit(1_000_000)).toEqual({ late: false, unpaid: true })
    const owed = await engine.check(item(hourly, 1))
    expect([owed.allowed, owed.retryAfterMs]).toEqual([false, 11 * 360_000])
    expect(await engine.reservation(item(window, 1), 'x').commit(21)).toEqual({ late: true, unpaid: true })
    expect(await engine.reservation(item(window, 1, 'bob'), 'x').commit(20)).toEqual({ late: true, unpaid: false })
  })

  it('settles by itself what lapses, in the window that is open only', async () => {
    await engine.reserve(item(window, 8), { holdMs: 1000 })
    clock.advance(1000)
    expect((await engine.check(item(window, 10))).allowed).toBe(true)
    clock.advance(9000)
    await engine.reserve(item(window, 8), { holdMs: 15_000 })
    clock.advance(10_000)
    await engine.check(item(window, 5))
    clock.advance(5000)
    expect(await remaining(engine, item(window))).toEqual([5])
  })

  it('refuses a reservation where 4,096 are held, until the first of them lapses', async () => {
    const wide = tokenBucket({ limit: 10_000, period: '1h' })
    await Promise.all(Array.from({ length: 4096 }, () => engine.reserve(item(wide), { holdMs: 5000 })))
    const full = await engine.reserve(item(wide), { holdMs: 5000 })
    expect([full.allowed, full.reason, full.retryAfterMs]).toEqual([false, 'limit', 5000])
    expect((await engine.check(item(wide))).allowed).toBe(true)
    clock.advance(5000)
    expect((await engine.reserve(item(wide))).allowed).toBe(true)
    // Not all at once.
    for (let i = 0; i < 70; i++) await engine.check(item(wide, 0))
    for (let i = 0; i < 70; i++) await engine.check(item(wide))
    expect(await remaining(engine, item(wide))).toEqual([10_000 - 72])
  }, 60_000)

  it('is all or nothing over several limits of several algorithms, whatever is done', async () => {
    const all = (cost: number, key = 'ann') =>
      [tenPerSecond, window, line, log].flatMap((limit) => item(limit, cost, key))
    expect((await engine.reserve([...all(5), ...item(hourly, 11, 'ann', 'hourly')])).reason).toBe('never')
    expect((await engine.acquire([...all(5), ...item(hourly, 11, 'ann', 'hourly')])).reason).toBe('never')
    expect(await remaining(engine, all(1))).toEqual([10, 10, 10, 10])
    const { reservation } = await engine.reserve(all(4))
    expect((await engine.check(all(7))).allowed).toBe(false)
    const grant = await engine.takeUpTo(all(1), 100)
    expect([grant.granted, await remaining(engine, all(1))]).toEqual([6, [0, 0, 0, 0]])
    expect(await engine.refund(all(6), { receipt: grant.decision.receipt as string })).toEqual([6, 6, 6, 6])
    expect(await reservation?.commit(1)).toEqual({ late: false, unpaid: false })
    expect(await remaining(engine, all(1))).toEqual([9, 9, 9, 9])
    await engine.block(item(log))
    expect((await engine.check(all(1))).reason).toBe('blocked')
    expect((await engine.takeUpTo(all(1), 5)).granted).toBe(0)
    expect((await engine.reserve(all(1))).allowed).toBe(false)
    expect((await engine.acquire(all(1), { timeoutMs: 100 })).reason).toBe('blocked')
    await engine.unblock(all(1))
    expect(await remaining(engine, all(1))).toEqual([9, 9, 9, 9])
    await engine.reset(all(1))
    expect(await remaining(engine, all(1))).toEqual([10, 10, 10, 10])
  })

  it('names the true wait of a block, which a second one never shortens (node-rate-limiter-flexible#210)', async () => {
    await engine.block(item(hourly))
    await engine.block(item(hourly), { durationMs: 1000 })
    for (let i = 0; i < 3; i++) expect((await other.check(item(hourly))).reason).toBe('blocked')
    await engine.reset(item(hourly))
    clock.advance(90 * 86_400_000)
    expect((await other.check(item(hourly))).reason).toBe('blocked')
    expect([await other.unblock(item(hourly)), await engine.unblock(item(hourly))]).toEqual([true, false])
    await engine.block(item(hourly), { durationMs: 30_000 })
    clock.advance(10_000)
    const blocked = await engine.check(item(hourly, 0))
    expect([blocked.reason, blocked.retryAfterMs, blocked.limitedBy]).toEqual(['blocked', 20_000, 'token-bucket'])
    clock.advance(20_000)
    expect((await engine.check(item(hourly))).allowed).toBe(true)
  })

  it('leaves a counter as it was after a refusal, also of a cost that can never be (bucket4j#20, rwz/redis-gcra#6)', async () => {
    const bucket = tokenBucket({ limit: 1, period: '10s', burst: 5 })
    await engine.check(item(bucket, 3))
    for (const cost of [5, 1_000_000]) await engine.check(item(bucket, cost))
    for (const cost of [6, 1_000_000]) {
      const never = await engine.acquire(item(bucket, cost), { timeoutMs: 60_000 })
      expect([never.allowed, never.reason, never.retryAfterMs]).toEqual([false, 'never', Number.POSITIVE_INFINITY])
    }
    expect(await remaining(engine, item(bucket))).toEqual([2])
    expect((await engine.check(item(bucket, 2))).allowed).toBe(true)
  })

  it('charges nothing of the first rule where a later one refuses, and names the longest wait (milvus-io/milvus#25597)', async () => {
    const a = tokenBucket({ limit: 10, period: '1m' })
    const b = tokenBucket({ limit: 30, period: '30m' })
    const both = [...item(b, 1, '', 'b'), ...item(a, 1, '', 'a')]
    let allowed = 0
    for (let i = 0; i < 31; i++) {
      const decision = await engine.check(both)
      if (decision.allowed) allowed += 1
      else expect([decision.limitedBy, decision.retryAfterMs > 0]).toEqual(['a', true])
    }
    expect([allowed, ...(await remaining(engine, both))]).toEqual([10, 20, 0])
  })

  it('keeps several limiters on one route apart: 20 calls leave 20 in each (express-rate-limit#395)', async () => {
    const route = [20, 200, 1200].flatMap((limit, i) =>
      item(fixedWindow({ limit, period: ['1m', '10m', '1h'][i] as '1m' }), 1, 'ann', `l${i}`),
    )
    for (let i = 0; i < 20; i++) expect((await engine.check(route)).allowed).toBe(true)
    expect(await remaining(engine, route)).toEqual([0, 180, 1180])
  })

  it('refuses on whichever instance, and names one end of the window from both (mailgun/gubernator#208)', async () => {
    const one = item(fixedWindow({ limit: 1, period: '30s' }))
    const ends = new Set<number>()
    expect((await engine.check(one)).allowed).toBe(true)
    for (let i = 0; i < 10; i++) {
      const decision = await (i % 2 ? engine : other).check(one)
      expect(decision.allowed).toBe(false)
      ends.add(Math.round((decision.at + decision.retryAfterMs) * 1000))
      clock.advance(1000)
    }
    expect(ends.size).toBe(1)
    const three = item(tokenBucket({ limit: 3, period: '1s' }))
    let allowed = 0
    for (let i = 0; i < 100; i++) {
      if ((await (i % 2 ? engine : other).check(three)).allowed) allowed += 1
      clock.advance(100)
    }
    expect(allowed).toBe(3 + 29)
  })

  it('lets a holder keep its slots by renewing them, tells one that has lapsed, and releases once (apache/apisix#12823)', async () => {
    const two = concurrency({ limit: 2, ttl: '10s' })
    const first = await engine.check(item(two))
    const second = await other.check(item(two))
    clock.advance(9999)
    expect(await first.renew?.()).toBe(true)
    clock.advance(1)
    const third = await other.check(item(two))
    expect([third.allowed, await second.renew?.()]).toEqual([true, false])
    await second.release?.()
    expect(await remaining(engine, item(two))).toEqual([0])
    for (let i = 0; i < 3; i++) await first.release?.()
    expect(await remaining(engine, item(two))).toEqual([1])
    expect(await first.renew?.()).toBe(false)
  })

  it('begins empty since the first use of the rule, at one instant for all keys and processes', async () => {
    const empty = tokenBucket({ limit: 10, period: '10s', initial: 'empty' })
    expect((await engine.check(item(empty, 1, 'ann'))).allowed).toBe(false)
    clock.advance(3000)
    expect(await remaining(other, item(empty, 1, 'bob'))).toEqual([3])
    expect((await other.check(item(empty, 4, 'bob'))).retryAfterMs).toBe(1000)
    expect((await other.check(item(empty, 3, 'bob'))).allowed).toBe(true)
    clock.advance(60_000)
    expect(await remaining(engine, item(empty, 1, 'new'))).toEqual([10])
    // The clock steps back to before: never longer than a whole budget takes.
    clock.advance(-3_600_000)
    expect((await engine.check(item(empty, 1, 'late'))).retryAfterMs).toBeLessThanOrEqual(10_000)
    clock.advance(10_000)
    expect((await engine.check(item(empty, 10, 'later'))).allowed).toBe(true)
  })

  it('judges shadow rules and candidates beside a check: charged by their own verdict, never in the answer', async () => {
    const live = (limit: Limit, cost = 1) => item(limit, cost)
    const two = tokenBucket({ limit: 2, period: '1h' })
    const shadow: CheckItem = { rule: 'shade', name: 'user', limit: two, key: 'ann', group: 'shadow' }
    const candidate: CheckItem = { rule: 'ops', name: 'token-bucket', limit: two, key: 'ann', group: 'candidate' }
    const wide = tokenBucket({ limit: 5, period: '1h' })
    const seen: unknown[] = []
    for (let i = 0; i < 6; i++) {
      const decision = await engine.check([...live(wide), shadow, candidate])
      expect(decision.limits).toHaveLength(1)
      seen.push([decision.allowed, ...(decision.beside ?? []).map(({ kind, allowed }) => `${kind} ${allowed}`)])
    }
    expect(seen).toEqual([
      [true, 'shadow true', 'candidate true'],
      [true, 'shadow true', 'candidate true'],
      ...Array.from({ length: 3 }, () => [true, 'shadow false', 'candidate false']),
      [false, 'shadow false', 'candidate false'],
    ])
    // Where the live rule refuses, a shadow rule is judged only; a candidate, which would take its place, is charged.
    const others = { ...shadow, key: 'bob' }
    const instead = { ...candidate, key: 'bob' }
    expect((await engine.check([...live(wide), others, instead])).allowed).toBe(false)
    const left = async (group: 'shadow' | 'candidate', one: CheckItem) =>
      (await engine.peek([...item(hourly, 1, 'any'), { ...one, group, cost: 0 }])).beside?.[0]?.limits[0]?.remaining
    expect([await left('shadow', others), await left('candidate', instead)]).toEqual([2, 1])
    if (kind === 'redis')
      expect(await redis.keys('*~candidate*')).toEqual(
        expect.arrayContaining(['rate_limit:ops:token-bucket~candidate:bob']),
      )
  })

  it('charges beside a place in line, and not again beside a repeated reservation', async () => {
    const shadow: CheckItem = { rule: 'shade', name: 'user', limit: hourly, key: 'ann', group: 'shadow' }
    const left = async () => (await engine.peek([...item(hourly), shadow])).beside?.[0]?.limits[0]?.remaining
    const fast = tokenBucket({ limit: 1000, period: '1s', burst: 1 })
    await engine.check(item(fast))
    expect((await engine.acquire([...item(fast), shadow], { timeoutMs: 1000 })).allowed).toBe(true)
    expect(await left()).toBe(9)
    for (let i = 0; i < 3; i++) await engine.reserve([...item(hourly), shadow], { id: 'one' })
    expect(await left()).toBe(8)
  })
})

describe('in Redis', () => {
  it('everything that a check judges takes one call of the script', async () => {
    const store = redisStoreOnClock(new Redis(server.url, { lazyConnect: true }), fakeClock())
    const engine = createEngine({ store, timeoutMs: 10_000 })
    const items: CheckItem[] = [
      ...item(hourly),
      ...item(window),
      { rule: 'shade', name: 'user', limit: log, key: 'ann', group: 'shadow' },
      { rule: 'ops', name: 'fixed-window', limit: line, key: 'ann', group: 'candidate' },
    ]
    await engine.peek(items)
    const calls = async () => /cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]
    await redis.config('RESETSTAT')
    await engine.check(items)
    expect(await calls()).toBe('1')
    const { reservation } = await engine.reserve(items)
    await reservation?.commit()
    await engine.takeUpTo(item(hourly), 3)
    await engine.acquire(items)
    expect(await calls()).toBe('5')
    await engine.close()
    await store.close()
  })
})
