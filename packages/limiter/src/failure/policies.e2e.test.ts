import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, createLimiter, type Decision, type Engine, StoreUnavailableError, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { afterEach, describe, expect, it } from 'vitest'
import { record, until } from '../../../../test/load.ts'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import { CLIENTS, type TestClient } from '../../../../test/redis-clients.ts'
import { startProxy, type TcpProxy } from '../../../../test/tcp-proxy.ts'

const LIMIT = tokenBucket({ limit: 4, period: '1h' })
const POLICIES = ['open', 'closed', 'local', 'throw'] as const
type Named = (typeof POLICIES)[number]

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface Stage {
  readonly redis: RedisServer
  readonly proxy: TcpProxy
}

const situations: readonly {
  readonly name: string
  readonly atStart: boolean
  readonly password?: string
  begin(stage: Stage): unknown
  end(stage: Stage): unknown
}[] = [
  {
    name: 'Redis was down at the start',
    atStart: true,
    begin: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.start(),
  },
  {
    name: 'Redis went down',
    atStart: false,
    begin: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.start(),
  },
  {
    name: 'Redis is slow',
    atStart: false,
    begin: ({ proxy }) => proxy.delay(1500),
    end: ({ proxy }) => proxy.delay(0),
  },
  {
    name: 'the password is wrong',
    atStart: true,
    password: 'limiter:secret@',
    begin: () => undefined,
    end: ({ redis }) => redis.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~*', '+@all'),
  },
]

/** What each policy answers, decision after decision, with four units an hour and two instances. */
function expected(policy: Named, n: number): Partial<Decision> {
  switch (policy) {
    case 'open':
      return { allowed: true, source: 'policy', degraded: true, retryAfterMs: 0 }
    case 'closed':
      return { allowed: false, reason: 'store', source: 'policy', degraded: true, retryAfterMs: 1000 }
    default:
      return n < 2
        ? { allowed: true, source: 'local', degraded: true, retryAfterMs: 0 }
        : { allowed: false, reason: 'limit', source: 'local', degraded: true }
  }
}

async function stage(atStart: boolean, situation: (typeof situations)[number]): Promise<Stage> {
  const redis = await startRedis()
  ends.push(() => redis.stop())
  const proxy = await startProxy(redis.port)
  ends.push(() => proxy.close())
  if (atStart) await situation.begin({ redis, proxy })
  return { redis, proxy }
}

describe.each([CLIENTS[1], CLIENTS[3]] as TestClient[])('On $name', ({ make }) => {
  describe.each(situations)('while $name', (situation) => {
    it.each(POLICIES)(
      '%s decides as documented, and Redis decides again afterwards (Kong/kong#2382)',
      async (policy) => {
        const where = await stage(situation.atStart, situation)
        const store = redisStore(make(`redis://${situation.password ?? ''}127.0.0.1:${where.proxy.port}`))
        const limiter = createLimiter({
          name: 'p',
          store,
          limit: LIMIT,
          onStoreFailure: policy,
          timeoutMs: 200,
          instances: 2,
        })
        ends.push(
          () => store.close(),
          () => limiter.close(),
        )
        const stored = () =>
          limiter
            .peek('warm')
            .then(({ source }) => source === 'store')
            .catch(() => false)
        if (!situation.atStart) {
          await until('the store', stored)
          await situation.begin(where)
        }
        for (let n = 0; n < 12; n++) {
          if (policy === 'throw') await expect(limiter.check('k')).rejects.toThrow(StoreUnavailableError)
          else {
            const decision = await limiter.check('k')
            expect(decision).toMatchObject(expected(policy, n))
            sound(decision)
          }
        }
        await situation.end(where)
        await until('the store', stored)
        const decided = await Promise.all(Array.from({ length: 8 }, () => limiter.check('fresh')))
        expect(decided.every(({ source }) => source === 'store')).toBe(true)
        expect(decided.filter(({ allowed }) => allowed)).toHaveLength(4)
      },
    )
  })
})

/** No number is undefined or NaN, whatever went wrong (firecrawl/firecrawl#3728). */
function sound(decision: Decision): void {
  const { retryAfterMs, delayMs, at, limits } = decision
  for (const number of [retryAfterMs, delayMs, at, ...limits.flatMap((limit) => Object.values(limit))]) {
    if (typeof number === 'string') continue
    expect(Number.isFinite(number)).toBe(true)
    expect(number).toBeGreaterThanOrEqual(0)
  }
  expect(decision.reason === undefined).toBe(decision.allowed)
}

describe('A key that holds something else', () => {
  it.each([
    ['a list', (redis: RedisServer, key: string) => redis.command('RPUSH', key, 'x')],
    ['a hash', (redis: RedisServer, key: string) => redis.command('HSET', key, 'x', '1')],
    ['text', (redis: RedisServer, key: string) => redis.command('SET', key, 'not a state')],
  ])('%s is replaced and counted, and its batch is not hurt (rate-limit-redis#72)', async (_, spoil) => {
    const redis = await startRedis()
    ends.push(() => redis.stop())
    const store = redisStore((CLIENTS[1] as TestClient).make(redis.url))
    const engine = createEngine({ store, timeoutMs: 1000 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const events = record(engine)
    const ask = (key: string) => engine.check([{ rule: 'r', name: 'l', limit: LIMIT, key }])
    expect((await ask('first')).source).toBe('store')
    await spoil(redis, 'rate_limit:r:l:spoilt')
    const decided = await Promise.all([...Array.from({ length: 8 }, () => ask('spoilt')), ask('other')])
    expect(decided.every(({ source }) => source === 'store')).toBe(true)
    expect(decided.slice(0, 8).filter(({ allowed }) => allowed)).toHaveLength(4)
    expect(events).toEqual(['error garbage'])
    expect(Number((await redis.command('PTTL', 'rate_limit:r:l:spoilt')).slice(1))).toBeGreaterThan(0)
  })
})

describe('A signal', () => {
  it('ends the wait at once, before, during and after, and leaves the rest of the batch alone', async () => {
    const redis = await startRedis()
    ends.push(() => redis.stop())
    const store = redisStore((CLIENTS[3] as TestClient).make(redis.url))
    const engine: Engine = createEngine({ store, timeoutMs: 2000 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const ask = (key: string, signal?: AbortSignal) =>
      engine.check([{ rule: 'r', name: 'l', limit: LIMIT, key }], { signal })
    const used = async (key: string) =>
      4 - ((await engine.peek([{ rule: 'r', name: 'l', limit: LIMIT, key }])).limits[0]?.remaining as number)
    expect((await ask('warm')).source).toBe('store')

    await expect(ask('before', AbortSignal.abort(new Error('left')))).rejects.toThrow('left')

    const early = new AbortController()
    const unsent = ask('unsent', early.signal)
    const beside = ask('beside')
    early.abort(new Error('left'))
    await expect(unsent).rejects.toThrow('left')
    expect((await beside).source).toBe('store')

    redis.pause()
    const during = new AbortController()
    const waiting = ask('during', during.signal)
    await sleep(20)
    const begunMs = performance.now()
    during.abort(new Error('left'))
    await expect(waiting).rejects.toThrow('left')
    expect(performance.now() - begunMs).toBeLessThan(50)
    redis.resume()

    const after = new AbortController()
    expect((await ask('after', after.signal)).source).toBe('store')
    after.abort()
    await sleep(50)
    expect(await used('before')).toBe(0)
    expect(await used('unsent')).toBe(0)
    expect(await used('after')).toBe(1)
    expect(await used('during')).toBeLessThanOrEqual(1)
    expect(engine.degraded).toBe(false)
  })
})
