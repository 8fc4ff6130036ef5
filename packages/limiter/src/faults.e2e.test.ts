import { Redis } from 'ioredis-5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import type { Decision } from './decision.ts'
import { createEngine, type Engine } from './engine.ts'
import { HeadgateError } from './errors.ts'
import type { Limit } from './limit.ts'
import { createLimiter } from './limiter.ts'
import type { Store } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { redisStore } from './stores/redis/index.ts'
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

const stores: Record<string, (clock: FakeClock) => Store> = {
  'in memory': (clock) => memoryStore({ clock }),
  'in Redis': (clock) => redisStoreOnClock(redis, clock, { prefix: 'faults' }),
}

/** What begins at nothing used and holds so many units, of every algorithm. */
const anyOf: Record<string, (limit: number) => Limit> = {
  'token bucket': (limit) => tokenBucket({ limit, period: '1m' }),
  'leaky bucket': (limit) => leakyBucket({ limit, period: '1m', queue: limit - 1 }),
  'fixed window': (limit) => fixedWindow({ limit, period: '1m', align: 'first-hit' }),
  calendar: (limit) => fixedWindow({ limit, period: 'year', align: 'calendar', timeZone: 'Asia/Kathmandu' }),
  'sliding window': (limit) => slidingWindow({ limit, period: '1m' }),
  'sliding log': (limit) => slidingLog({ limit, period: '1m' }),
  concurrency: (limit) => concurrency({ limit, ttl: '1m' }),
}

/** Faults that real limiters shipped, each under its public report; on a clock that the test moves. */
describe.each(Object.entries(stores))('faults of other limiters are impossible %s:', (_, open) => {
  let clock: FakeClock
  let store: Store
  let engine: Engine

  beforeEach(async () => {
    await redis.flushall()
    clock = fakeClock()
    store = open(clock)
    engine = createEngine({ store, timeoutMs: 10_000 })
  })

  afterEach(async () => {
    await engine.close()
    await store.close()
  })

  const take = (limit: Limit, cost = 1, name = 'limit') => engine.check([{ name, limit, key: 'ann', cost }])
  const peek = (limit: Limit, cost = 1, name = 'limit') => engine.peek([{ name, limit, key: 'ann', cost }])
  const left = (decision: Decision) => decision.limits.map(({ remaining }) => remaining)
  const bucket = (burst: number, perSecond: number) => tokenBucket({ limit: perSecond, period: '1s', burst })

  it('a capacity far below the rate still limits (spring-cloud/spring-cloud-gateway PR#2453)', async () => {
    for (const rate of [3, 1000, 1_000_000]) {
      const calls = await Promise.all(Array.from({ length: 10 }, () => take(bucket(1, rate), 1, `r${rate}`)))
      expect(calls.filter(({ allowed }) => allowed).length).toBe(1)
    }
  })

  it('1,000 in 60 s counts down from the first call (brandur/redis-cell#50)', async () => {
    const limit = tokenBucket({ limit: 1000, period: '60s' })
    expect([left(await take(limit)), left(await take(limit)), left(await take(limit))]).toEqual([[999], [998], [997]])
  })

  it.each([1500, 2000, 8000, 1_000_000])(
    '%d a second is enforced, not truncated (brandur/redis-cell#80)',
    async (rate) => {
      const limit = tokenBucket({ limit: rate, period: '1s' })
      expect(left(await take(limit, rate))).toEqual([0])
      expect((await take(limit)).allowed).toBe(false)
      clock.advance(1)
      expect((await take(limit, Math.floor(rate / 1000))).allowed).toBe(true)
      expect((await take(limit)).allowed).toBe(false)
    },
  )

  it('100 a second with 100 ms of back-off admits no third more (brandur/redis-cell#11)', async () => {
    const limit = bucket(11, 100)
    let allowed = 0
    for (let ms = 0; ms < 3600; ) {
      if ((await take(limit)).allowed) allowed += 1
      else {
        clock.advance(100)
        ms += 100
      }
    }
    expect(allowed).toBe(11 + 35 * 10)
  })

  it('a fixed window ends although it is called all the time (apache/shenyu#6649)', async () => {
    const limit = fixedWindow({ limit: 5, period: '10s' })
    for (let s = 0; s < 60; s += 3) {
      expect((await take(limit)).allowed).toBe(true)
      clock.advance(3000)
    }
  })

  it('a sliding window still counts the last one when nine tenths of this one are over (PostHog/posthog PR#89726)', async () => {
    for (const limit of [
      slidingWindow({ limit: 100, period: '60s', slices: 1 }),
      slidingLog({ limit: 100, period: '60s' }),
    ]) {
      clock.advanceUs(60_000_000 - (clock() % 60_000_000))
      const name = limit.algorithm
      for (let s = 0; s < 60; s++) {
        await take(limit, s < 40 ? 2 : 1, name)
        clock.advance(1000)
      }
      clock.advance(54_000)
      // Of 100, the last tenth: 10 by weight, and by the log those of the last 6 s.
      expect(left(await peek(limit, 0, name))).toEqual([limit.algorithm === 'sliding-log' ? 95 : 90])
      clock.advance(5999)
      expect(left(await peek(limit, 0, name))).toEqual([99 + (limit.algorithm === 'sliding-log' ? 1 : 0)])
    }
  })

  it('a cost above the limit of an empty window is refused at once (alisaifee/limits#151)', async () => {
    for (const limit of [slidingWindow({ limit: 10, period: '1m' }), slidingLog({ limit: 10, period: '1m' })]) {
      const refused = await take(limit, 11, limit.algorithm)
      expect([refused.allowed, refused.reason, refused.retryAfterMs]).toEqual([
        false,
        'never',
        Number.POSITIVE_INFINITY,
      ])
      expect(left(await take(limit, 10, limit.algorithm))).toEqual([0])
    }
  })

  it('100 calls of two instances in the same µs take exactly 10 (sockudo/sockudo#251)', async () => {
    const other = createEngine({ store, timeoutMs: 10_000 })
    for (const cost of [1, 3]) {
      for (const limit of [slidingLog({ limit: 10, period: '1m' }), slidingWindow({ limit: 10, period: '1m' })]) {
        const items = [{ name: `${limit.algorithm}${cost}`, limit, key: 'ann', cost }]
        const calls = await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? engine : other).check(items)))
        expect(calls.filter(({ allowed }) => allowed).length).toBe(Math.floor(10 / cost))
        expect(left(await engine.peek(items))).toEqual([10 % cost])
      }
    }
    await other.close()
  })

  it('what has lapsed is not counted before it is dropped (apache/shenyu#6754)', async () => {
    const limit = slidingLog({ limit: 3, period: '10s' })
    for (let i = 0; i < 3; i++) await take(limit)
    clock.advance(10_001)
    expect([(await take(limit)).allowed, left(await peek(limit))]).toEqual([true, [2]])
  })

  it('large numbers stay exact to the unit, or are refused with the range (redis/redis#1118)', async () => {
    const limit = tokenBucket({ limit: 1e15, period: '1s' })
    expect(left(await take(limit, 123_456_789))).toEqual([999_999_876_543_211])
    expect(() => tokenBucket({ limit: 1, period: '1s', burst: 1e15 })).toThrow(/these fit: burst 9007199254 or less/)
    const largest = tokenBucket({ limit: 1, period: '1s', burst: 9_007_199_254 })
    expect(left(await take(largest, 123_456_789, 'largest'))).toEqual([9_007_199_254 - 123_456_789])
  })

  it('instants 30 µs apart are told apart (nrk/redis-lua#30)', async () => {
    const limit = tokenBucket({ limit: 1, period: 0.03 })
    expect(clock()).toBeGreaterThan(1.7e15)
    expect((await take(limit)).allowed).toBe(true)
    clock.advanceUs(29)
    expect((await take(limit)).allowed).toBe(false)
    clock.advanceUs(1)
    expect((await take(limit)).allowed).toBe(true)
  })

  it.each([0, 1.7e15, 4e15])(
    'a whole second gives nothing extra, at the epoch of %d µs (rwz/redis-gcra PR#2)',
    async (us) => {
      clock.setUs(us + 900_000)
      const limit = bucket(10, 10)
      await take(limit, 10)
      clock.advance(100)
      expect([(await take(limit)).allowed, (await take(limit)).allowed]).toEqual([true, false])
    },
  )

  it.each([
    -1,
    -1e9,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '5',
    2 ** 53,
    null,
    true,
    1n,
    [1],
    { valueOf: () => 1 },
  ])('a cost of %s is an error and charges nothing (mailgun/gubernator#156)', async (cost) => {
    const limit = bucket(5, 1)
    await take(limit, 2)
    await expect(take(limit, cost as number)).rejects.toThrow(/^cost: .* is not an integer from 0 to 9007199254740991$/)
    await expect(peek(limit, cost as number)).rejects.toMatchObject({ argument: 'cost' })
    expect(left(await peek(limit))).toEqual([3])
  })

  it('a cost of 2^32 or 2^53 − 1 wraps nowhere (envoyproxy/ratelimit PR#802)', async () => {
    for (const limit of [bucket(5, 1), fixedWindow({ limit: 5, period: '1s' })]) {
      for (const cost of [2 ** 31, 2 ** 32, 2 ** 53 - 1]) {
        expect((await take(limit, cost, limit.algorithm)).reason).toBe('never')
      }
      expect(left(await peek(limit, 1, limit.algorithm))).toEqual([5])
    }
  })

  it('peeking takes nothing (upstash/ratelimit-js#111)', async () => {
    const limit = fixedWindow({ limit: 5, period: '1m' })
    await take(limit)
    for (let i = 0; i < 100; i++) expect(left(await peek(limit))).toEqual([4])
    for (let i = 0; i < 100; i++) expect(left(await take(limit, 0))).toEqual([4])
  })

  it('a cost above the capacity is refused at once, for ever, and free (bucket4j#20, alisaifee/limits#151)', async () => {
    for (const limit of [bucket(10, 1), fixedWindow({ limit: 10, period: '10s' })]) {
      const refused = await take(limit, 100, limit.algorithm)
      expect(refused).toMatchObject({ allowed: false, reason: 'never', retryAfterMs: Number.POSITIVE_INFINITY })
      expect(left(refused)).toEqual([10])
      expect(left(await take(limit, 1, limit.algorithm))).toEqual([9])
    }
  })

  it('a refused call costs nothing and locks nobody out (upstash/ratelimit-js PR#156)', async () => {
    const limit = tokenBucket({ limit: 1, period: '10s', burst: 5 })
    await take(limit, 3)
    expect(left(await take(limit, 5))).toEqual([2])
    expect((await take(limit, 2)).allowed).toBe(true)
    await take(limit, 1_000_000)
    clock.advance(50_000)
    expect(left(await take(limit, 5))).toEqual([0])
  })

  it('numbers are never negative, waits end within the span, who is allowed need not wait (alisaifee/flask-limiter#62)', async () => {
    const limits = [
      bucket(3, 2),
      fixedWindow({ limit: 3, period: '2s' }),
      fixedWindow({ limit: 3, period: '2s', align: 'first-hit' }),
    ]
    for (const [i, limit] of limits.entries()) {
      for (let step = 0; step < 40; step++) {
        const decision = await take(limit, 1 + (step % 4), `limit${i}`)
        const { remaining, retryAfterMs, nextMs, resetAfterMs } = decision.limits[0] as Decision['limits'][number]
        const finite = [
          remaining,
          nextMs,
          resetAfterMs,
          decision.retryAfterMs === Number.POSITIVE_INFINITY ? 0 : retryAfterMs,
        ]
        for (const number of finite) expect(number).toBeGreaterThanOrEqual(0)
        for (const wait of finite.slice(1)) expect(wait).toBeLessThanOrEqual(limit.spanUs / 1000)
        expect(decision.retryAfterMs === 0).toBe(decision.allowed)
        clock.advanceUs(step * 37_011)
      }
    }
  })

  it('three limits on one call are counted once each (express-rate-limit/express-rate-limit#395)', async () => {
    const limits = {
      minute: fixedWindow({ limit: 20, period: '1m' }),
      tenMinutes: tokenBucket({ limit: 200, period: '10m' }),
      hour: tokenBucket({ limit: 1200, period: '1h' }),
    }
    const items = Object.entries(limits).map(([name, limit]) => ({ rule: 'route', name, limit, key: 'ann' }))
    for (let i = 1; i <= 20; i++) {
      const decision = await engine.check(items)
      expect([decision.allowed, left(decision)]).toEqual([true, [20 - i, 200 - i, 1200 - i]])
    }
    expect((await engine.check(items)).limitedBy).toBe('minute')
  })

  it('what a later limit refuses is not charged to an earlier one (milvus-io/milvus#25597)', async () => {
    const items = [
      { rule: 'route', name: 'half-hour', limit: tokenBucket({ limit: 30, period: '30m' }), key: '' },
      { rule: 'route', name: 'minute', limit: tokenBucket({ limit: 10, period: '1m' }), key: '' },
    ]
    let allowed = 0
    for (let i = 0; i < 31; i++) {
      const decision = await engine.check(items)
      if (decision.allowed) allowed += 1
      else
        expect(decision).toMatchObject({
          rule: 'route',
          limitedBy: 'minute',
          retryAfterMs: decision.limits[1]?.retryAfterMs,
        })
      clock.advance(2000)
    }
    expect(allowed).toBe(20)
    const { limits } = await engine.peek(items)
    // One of the 20 has come back in the 62 s.
    expect(limits[0]?.remaining).toBe(30 - 20 + 1)
  })

  it('two nodes on different versions of the rules count together (apache/apisix#7746)', async () => {
    const other = createEngine({ store, timeoutMs: 10_000 })
    const one = { rule: 'a', name: 'x', limit: tokenBucket({ limit: 10, period: '1h' }), key: 'ann' }
    const same = { ...one, limit: tokenBucket({ limit: 10, period: '1h' }) }
    const unrelated = { rule: 'b', name: 'y', limit: tokenBucket({ limit: 1000, period: '1h' }), key: 'ann' }
    let allowed = 0
    for (let i = 0; i < 100; i++) {
      const decision = i % 2 === 0 ? await engine.check([one]) : await other.check([unrelated, same])
      if (decision.allowed) allowed += 1
    }
    expect(allowed).toBe(10)
    await other.close()
  })

  it.each(Object.entries(anyOf))(
    'nodes on different versions of a %s count together, and rules alike apart (apache/apisix#6760)',
    async (_name, limitOf) => {
      const other = createEngine({ store, timeoutMs: 10_000 })
      const item = (rule: string) => ({ rule, name: 'x', limit: limitOf(10), key: 'ann' })
      let allowed = 0
      for (let i = 0; i < 100; i++) {
        const engineOf = i % 2 === 0 ? engine : other
        if ((await engineOf.check([item('a'), ...(i % 2 === 0 ? [] : [item(`other${i}`)])])).allowed) allowed += 1
      }
      expect([allowed, left(await engine.peek([item('b')]))]).toEqual([10, [10]])
      await other.close()
    },
  )

  it.each(Object.entries(anyOf))(
    'a %s keeps what was used when its rule changes, and when it does not (redisson/redisson#2618, #5098)',
    async (_name, limitOf) => {
      expect(left(await take(limitOf(100), 80))).toEqual([20])
      for (let i = 0; i < 1000; i++) expect(left(await peek(limitOf(100)))).toEqual([20])
      for (let i = 0; i < 20; i++) expect((await take(limitOf(50))).allowed).toBe(false)
      expect(left(await peek(limitOf(200)))).toEqual([120])
      expect(left(await take(limitOf(200), 20))).toEqual([100])
    },
  )

  it.each([
    ['leaky bucket', leakyBucket({ limit: 1, period: '1h' }), leakyBucket({ limit: 1, period: '1s' }), 1000],
    ['concurrency', concurrency({ limit: 1, ttl: '60s' }), concurrency({ limit: 1, ttl: '10s' }), 10_000],
    [
      'calendar',
      fixedWindow({ limit: 1, period: 'year', align: 'calendar' }),
      fixedWindow({ limit: 1, period: 'minute', align: 'calendar' }),
      60_000,
    ],
  ])(
    'a shorter period of a %s is in force within it (redisson/redisson#5060)',
    async (_name, long, short, withinMs) => {
      while ((await take(long)).allowed) clock.advance(0)
      expect((await take(short)).retryAfterMs).toBeLessThanOrEqual(withinMs)
      clock.advance(withinMs)
      expect((await take(short)).allowed).toBe(true)
    },
  )

  it('two rules of the same numbers do not share a counter (apache/apisix#6760)', async () => {
    const limit = tokenBucket({ limit: 1, period: '1h' })
    const at = (rule: string, name: string) => engine.check([{ rule, name, limit, key: 'ann' }])
    const calls = [await at('a', 'x'), await at('b', 'x'), await at('a', 'y'), await at('a', 'x')]
    expect(calls.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
  })

  it('a limiter of the same name with other numbers is an error; another name counts apart (rate-limit-redis#171)', async () => {
    const limit = tokenBucket({ limit: 1, period: '1h' })
    const one = createLimiter({ name: 'one', store, limit, timeoutMs: 10_000 })
    const alike = createLimiter({
      name: 'one',
      store,
      limit: tokenBucket({ limit: 1, period: '1h' }),
      timeoutMs: 10_000,
    })
    const other = createLimiter({ name: 'other', store, limit, timeoutMs: 10_000 })
    const conflicting = () => createLimiter({ name: 'one', store, limit: tokenBucket({ limit: 2, period: '1h' }) })
    expect(conflicting).toThrow(HeadgateError)
    expect(conflicting).toThrow(/name: "one" is used on this store with other limits/)
    const calls = [await one.check('ann'), await alike.check('ann'), await other.check('ann')]
    expect(calls.map(({ allowed }) => allowed)).toEqual([true, false, true])
    await Promise.all([one.close(), alike.close()])
    expect(conflicting).not.toThrow()
    await other.close()
  })

  it('115 a second drifts neither up nor down in six hours (redisson/redisson#3804)', async () => {
    const limit = tokenBucket({ limit: 115, period: '1s' })
    const hours: number[] = []
    for (let hour = 0; hour < 6; hour++) {
      let admitted = 0
      // A second's worth and more is asked for at once, then much later: each hour is as the first.
      for (let call = 0; call < 36; call++) {
        for (const cost of [60, 55, 1]) if ((await take(limit, cost)).allowed) admitted += cost
        clock.advanceUs(100_000_000 - 1)
        if ((await take(limit, 115)).allowed) admitted += 115
        clock.advanceUs(1)
      }
      hours.push(admitted)
    }
    expect(hours[5]).toBe(hours[1])
    expect((await take(limit, 116)).reason).toBe('never')
  })
})

describe('with Redis away, the share of one instance', () => {
  it('charges all limits of a check or none (ravangen/graphql-rate-limit#129)', async () => {
    const store = redisStore(new Redis({ port: 1, lazyConnect: true }))
    const engine = createEngine({ store })
    const items = [
      { rule: 'route', name: 'half-hour', limit: tokenBucket({ limit: 30, period: '30m' }), key: '' },
      { rule: 'route', name: 'minute', limit: tokenBucket({ limit: 10, period: '1h' }), key: '' },
    ]
    for (let i = 0; i < 31; i++) expect((await engine.check(items)).allowed).toBe(i < 10)
    const { limits } = await engine.peek(items)
    expect(limits.map(({ remaining }) => remaining)).toEqual([20, 0])
    await engine.close()
    await store.close()
  })
})
