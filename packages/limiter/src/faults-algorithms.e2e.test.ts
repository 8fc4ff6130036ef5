import { Redis } from 'ioredis-5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
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

const stores: readonly [string, (clock: FakeClock) => Store][] = [
  ['in memory', (clock) => memoryStore({ clock })],
  ['in Redis', (clock) => redisStoreOnClock(redis, clock, { prefix: 'faults' })],
]

/** Each holds so many units, and is unused again when so many ms have passed. */
const ALGORITHMS: readonly [string, (units: number, ms: number) => Limit][] = [
  ['token bucket', (limit, period) => tokenBucket({ limit, period })],
  ['leaky bucket', (limit, period) => leakyBucket({ limit, period, queue: limit - 1 })],
  ['fixed window', (limit, period) => fixedWindow({ limit, period, align: 'first-hit' })],
  ['sliding window', (limit, period) => slidingWindow({ limit, period })],
  ['sliding log', (limit, period) => slidingLog({ limit, period })],
  ['concurrency', (limit, ttl) => concurrency({ limit, ttl })],
]

const cases = stores.flatMap(([where, open]) => ALGORITHMS.map(([algorithm, of]) => ({ where, open, algorithm, of })))

/** Faults that real limiters shipped in one algorithm or call, tried on all of them. */
describe.each(cases)('of a $algorithm $where:', ({ open, of, algorithm }) => {
  const holdsSlots = algorithm === 'concurrency'
  let clock: FakeClock
  let store: Store
  let engine: Engine
  let other: Engine

  beforeEach(async () => {
    await redis.flushall()
    clock = fakeClock()
    store = open(clock)
    engine = createEngine({ store, timeoutMs: 10_000 })
    other = createEngine({ store, timeoutMs: 10_000 })
  })

  afterEach(async () => {
    await Promise.all([engine.close(), other.close()])
    await store.close()
  })

  const item = (limit: Limit, cost = 1, name = 'limit'): CheckItem[] => [{ rule: 'r', name, limit, key: 'ann', cost }]
  const left = async (limit: Limit, name = 'limit') =>
    (await engine.peek(item(limit, 0, name))).limits.map(({ remaining }) => remaining)

  it('rates of thousands a second are enforced, or refused when they are made (brandur/redis-cell#80)', async () => {
    for (const rate of [1500, 8000, 1_000_000]) {
      if (rate > 10_000 && ['sliding log', 'concurrency'].includes(algorithm)) {
        expect(() => of(rate, 1000)).toThrow(expect.objectContaining({ code: 'HEADGATE_OUT_OF_RANGE' }))
        continue
      }
      const limit = of(rate, 1000)
      expect((await engine.check(item(limit, rate, `r${rate}`))).allowed).toBe(true)
      expect([await left(limit, `r${rate}`), (await engine.check(item(limit, 1, `r${rate}`))).allowed]).toEqual([
        [0],
        false,
      ])
    }
  })

  it('100 calls of two instances in one µs take no more than fit, whatever they ask with (sockudo/sockudo#251)', async () => {
    for (const cost of [1, 3]) {
      const limit = of(10, 60_000)
      const calls = Array.from({ length: 100 }, (_, i) => (i % 2 ? engine : other).check(item(limit, cost, `c${cost}`)))
      const allowed = (await Promise.all(calls)).filter((decision) => decision.allowed).length
      expect([allowed, await left(limit, `c${cost}`)]).toEqual([Math.floor(10 / cost), [10 % cost]])
    }
    const limit = of(10, 60_000)
    const grants = await Promise.all(Array.from({ length: 5 }, () => other.takeUpTo(item(limit, 1, 'granted'), 3)))
    expect(grants.map(({ granted }) => granted)).toEqual([3, 3, 3, 1, 0])
  })

  it('what has lapsed is not counted before it is dropped: the very first call passes (apache/shenyu#6754)', async () => {
    const limit = of(3, 10_000)
    for (let i = 0; i < 3; i++) await engine.check(item(limit))
    clock.advanceUs(limit.spanUs)
    expect((await engine.check(item(limit))).allowed).toBe(true)
    expect(await left(limit)).toEqual([2])
  })

  it('a cost above the capacity is refused at once, for ever, and free, whatever it is asked by (bucket4j#20, rwz/redis-gcra#6)', async () => {
    const limit = of(5, 10_000)
    await engine.check(item(limit, 3))
    for (const cost of [6, 100, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      const asked = [
        engine.check(item(limit, cost)),
        engine.peek(item(limit, cost)),
        engine.acquire(item(limit, cost), { timeoutMs: 60_000 }),
        ...(holdsSlots ? [] : [engine.reserve(item(limit, cost))]),
      ]
      for (const decision of await Promise.all(asked)) {
        expect([decision.allowed, decision.reason]).toEqual([false, 'never'])
        expect([decision.retryAfterMs, decision.receipt]).toEqual([Number.POSITIVE_INFINITY, undefined])
      }
    }
    expect([await left(limit), (await engine.check(item(limit, 2))).allowed]).toEqual([[2], true])
  })

  it('a refused call changes nothing, and locks nobody out (upstash/ratelimit-js PR#156)', async () => {
    const limit = of(5, 10_000)
    await engine.check(item(limit, 3))
    expect((await engine.check(item(limit, 5))).allowed).toBe(false)
    expect((await engine.acquire(item(limit, 5), { timeoutMs: 0 })).allowed).toBe(false)
    if (!holdsSlots) expect((await engine.reserve(item(limit, 5))).allowed).toBe(false)
    expect(await left(limit)).toEqual([2])
    expect((await engine.takeUpTo(item(limit), 5)).granted).toBe(2)
    clock.advanceUs(limit.spanUs)
    expect((await engine.check(item(limit, 5))).allowed).toBe(true)
  })

  it('peeking takes nothing and makes nothing (upstash/ratelimit-js#111)', async () => {
    const limit = of(5, 60_000)
    for (let i = 0; i < 100; i++) await engine.peek(item(limit))
    expect(await redis.keys('*')).toEqual([])
    await engine.check(item(limit, 2))
    const [key = ''] = await redis.keys('*')
    const before = await redis.call('PEXPIRETIME', key)
    for (let i = 0; i < 100; i++) expect((await engine.peek(item(limit))).limits[0]?.remaining).toBe(3)
    expect(await redis.call('PEXPIRETIME', key)).toBe(before)
  })

  it('its next room is at one instant, from whichever instance it is asked, and does not move (mailgun/gubernator#208)', async () => {
    const limit = of(1, 30_000)
    await engine.check(item(limit))
    const ends = new Set<number>()
    for (let i = 0; i < 20; i++) {
      const decision = await (i % 2 ? engine : other).check(item(limit))
      expect(decision.allowed).toBe(false)
      ends.add(Math.round((decision.at + decision.retryAfterMs) * 1000))
      clock.advance(1000)
    }
    expect(ends.size).toBe(1)
    const [endUs = 0] = ends
    clock.setUs(endUs - 1)
    expect((await other.check(item(limit))).allowed).toBe(false)
    clock.setUs(endUs)
    expect((await other.check(item(limit))).allowed).toBe(true)
  })

  it('a block of 30 s ends then, and neither counter, refusals nor reset end it before (node-rate-limiter-flexible#210, #32, #138)', async () => {
    const limit = of(2, 90 * 86_400_000)
    await engine.check(item(limit))
    await engine.block(item(limit), { durationMs: 30_000 })
    for (let i = 0; i < 3; i++) {
      expect((await engine.check(item(limit))).reason).toBe('blocked')
      expect((await engine.takeUpTo(item(limit), 1)).granted).toBe(0)
      clock.advance(9999)
    }
    await engine.reset(item(limit))
    expect((await other.check(item(limit))).retryAfterMs).toBe(3)
    clock.advance(3)
    // Then the counter decides, of 90 days as it is.
    expect((await engine.check(item(limit, 2))).allowed).toBe(true)
    await engine.block(item(limit), { durationMs: 30_000 })
    clock.advance(30_000)
    expect((await engine.check(item(limit))).reason).toBe('limit')
    // For ever: no window ends it.
    await engine.block(item(limit))
    for (let i = 0; i < 3; i++) await engine.check(item(limit))
    clock.advance(91 * 86_400_000)
    expect((await engine.check(item(limit))).reason).toBe('blocked')
  })

  it('nothing is charged to it where a later limit refuses, whatever asks (milvus-io/milvus#25597)', async () => {
    const limit = of(30, 1_800_000)
    const both = [...item(limit), ...item(tokenBucket({ limit: 10, period: '1h' }), 1, 'later')]
    for (let i = 0; i < 31; i++) expect((await engine.check(both)).allowed).toBe(i < 10)
    expect((await engine.takeUpTo(both, 5)).granted).toBe(0)
    expect((await engine.reserve(both)).allowed).toBe(false)
    const refused = await engine.acquire(both, { timeoutMs: 10 })
    expect([refused.allowed, refused.limitedBy, refused.retryAfterMs > 0]).toEqual([false, 'later', true])
    expect(await left(limit)).toEqual([20])
  })

  it('what is given back raises it from nothing left, and never above full (envoyproxy/ratelimit PR#802)', async () => {
    if (holdsSlots) return
    const limit = of(5, 3_600_000)
    for (let i = 0; i < 5; i++) await engine.check(item(limit))
    expect([await left(limit), await engine.refund(item(limit, 2)), await left(limit)]).toEqual([[0], [2], [2]])
    expect([await engine.refund(item(limit, 1_000_000)), await left(limit)]).toEqual([[3], [5]])
    expect([await engine.refund(item(limit, 2)), await left(limit)]).toEqual([[0], [5]])
  })

  it('an id that nobody knows, and slots that nobody holds, change nothing', async () => {
    const limit = of(5, 60_000)
    const { receipt, release } = await engine.check(item(limit, 2))
    if (holdsSlots) {
      for (let i = 0; i < 3; i++) await release?.()
      expect(await engine.refund(item(limit, 2), { receipt })).toEqual([0])
      expect(await left(limit)).toEqual([5])
      return
    }
    const unknown = engine.reservation(item(limit), 'unknown')
    expect([await unknown.extend(1000), await left(limit)]).toEqual([false, [3]])
    expect(await unknown.cancel()).toEqual({ late: true, unpaid: false })
    expect(await left(limit)).toEqual([3])
  })

  it('a shorter period is in force within it, and a repeated one changes nothing (redisson/redisson#5060, #2618)', async () => {
    const [long, short] = [of(2, 60_000), of(2, 10_000)]
    await engine.check(item(long, 2))
    for (let i = 0; i < 1000; i++) await engine.peek(item(of(2, 60_000)))
    expect((await engine.check(item(short))).retryAfterMs).toBeLessThanOrEqual(short.spanUs / 1000)
    clock.advanceUs(short.spanUs)
    expect((await engine.check(item(short, 2))).allowed).toBe(true)
  })
})
