import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis-5'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../../../test/redis.ts'
import { concurrency } from '../../algorithms/concurrency/index.ts'
import { fixedWindow } from '../../algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../algorithms/leaky-bucket/index.ts'
import { slidingLog } from '../../algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../algorithms/token-bucket/index.ts'
import { createEngine, type Engine } from '../../engine.ts'
import type { Limit } from '../../limit.ts'
import type { CheckItem } from '../../part.ts'
import { DECIDE_LUA } from '../../script/decide.generated.ts'
import { withTtls } from '../../script/with-ttls.ts'
import type { RemoteStore } from '../../store.ts'
import { Batch } from './batch.ts'
import { redisStore } from './index.ts'

let server: RedisServer
let redis: Redis
let store: RemoteStore
let engine: Engine

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
  store = redisStore(redis, { prefix: 'expiry' })
  engine = createEngine({ store, timeoutMs: 10_000 })
})

afterAll(async () => {
  await engine.close()
  await store.close()
  redis.disconnect()
  await server.stop()
})

beforeEach(async () => {
  await redis.flushall()
})

/** Those whose keys live for a period at most, and a slice. */
const sliding = (limit: number, period: string | number): Limit[] => [
  slidingWindow({ limit, period }),
  slidingLog({ limit, period }),
]
const both = (limit: number, period: string | number): Limit[] => [
  tokenBucket({ limit, period }),
  fixedWindow({ limit, period, align: 'first-hit' }),
]
const check = (limit: Limit, key = 'ann', cost = 1) => engine.check([{ name: limit.algorithm, limit, key, cost }])
const peek = (limit: Limit, key = 'ann') => engine.peek([{ name: limit.algorithm, limit, key }])
const keyOf = (limit: Limit, key = 'ann') => `expiry:${limit.algorithm}:${key}`
const ttl = (limit: Limit, key = 'ann') => redis.pttl(keyOf(limit, key))

/** The TTL that the script gives, in ms: a short one is over before a second call comes. */
async function givenTtl(limit: Limit, cost = 1, nowUs = 0): Promise<number> {
  const batch = new Batch({ prefix: 'expiry:' })
  const part = { name: 'limit', limit, space: 'now:', value: `${limit.wire}`, cost, onStoreFailure: 'local' as const }
  const nothing = () => undefined
  batch.add({ check: { parts: [part], peek: false }, deadlineMs: 0, settled: false, answer: nothing, fail: nothing })
  const input = batch.encode(Number.MAX_SAFE_INTEGER, nowUs)
  const [, ttls] = (await redis.eval(withTtls(DECIDE_LUA), 1, ...batch.keys, input)) as [unknown, [number]]
  return ttls[0]
}

describe('the expiry of a counter in Redis', () => {
  it('is there after every call, also at the edge of expiring (scttcper/koa-simple-ratelimit#34)', async () => {
    const keys = Array.from({ length: 500 }, (_, i) => `caller${i}`)
    const limits = both(2, 100)
    const until = performance.now() + 1500
    let calls = 0
    while (performance.now() < until) {
      for (const limit of limits) {
        await Promise.all(keys.map((key) => check(limit, key)))
        const ttls = await Promise.all(keys.map((key) => ttl(limit, key)))
        // -1: a key without an expiry; -2: it has expired meanwhile, as it should.
        expect(ttls.filter((ms) => ms === -1 || ms > 202)).toEqual([])
        calls += keys.length
      }
    }
    expect(calls).toBeGreaterThan(3000)
  })

  it('is given back to a key that lost it, by a refusal too, and the caller passes again (alisaifee/limits#15)', async () => {
    for (const limit of [...both(2, '500ms'), ...sliding(2, '500ms')]) {
      await check(limit, 'ann', 2)
      await redis.persist(keyOf(limit))
      expect(await ttl(limit)).toBe(-1)
      expect((await check(limit)).allowed).toBe(false)
      const left = await ttl(limit)
      expect([left > 0, left <= limit.spanUs / 1000 + 2]).toEqual([true, true])
      await sleep(limit.spanUs / 1000 + 2)
      expect((await check(limit, 'ann', 2)).allowed).toBe(true)
    }
  })

  it('is at least 1 ms, however fast the budget is back (redis/redis PR#15093)', async () => {
    for (const rate of [3, 1000, 1_000_000, 5_000_000]) {
      const limit = tokenBucket({ limit: rate, period: '1s', burst: 1 })
      expect(await givenTtl(limit)).toBeGreaterThanOrEqual(1)
    }
  })

  it('is the time until the state means nothing, in ms rounded up, and 1 ms for Redis’s own rounding', async () => {
    const limit = tokenBucket({ limit: 3, period: '10s', burst: 30 })
    // 10 units take 33,333.3 ms.
    expect(await givenTtl(limit, 10)).toBe(33_335)
    const window = fixedWindow({ limit: 5, period: 12_345.678, align: 'first-hit' })
    expect(await givenTtl(window)).toBe(12_347)
  })

  it.each(['1s', '1m', '1h', '1d', '365d'])(
    'is of the order of the period %s, in its unit (Kong/kong#14995)',
    async (period) => {
      const others = [
        fixedWindow({ limit: 2, period }),
        leakyBucket({ limit: 2, period }),
        concurrency({ limit: 2, ttl: period }),
      ]
      for (const limit of [...both(2, period), ...sliding(2, period), ...others]) {
        const ms = await givenTtl(limit)
        expect(ms).toBeGreaterThan(0)
        expect(ms).toBeLessThanOrEqual(Math.ceil(limit.spanUs / 1000) + 1)
        await redis.flushall()
      }
    },
  )

  it.each(['hour', 'day', 'week', 'month', 'year'])(
    'is that of the window, of a calendar’s %s (Kong/kong#14995)',
    async (period) => {
      const limit = fixedWindow({ limit: 2, period, align: 'calendar', timeZone: 'Australia/Lord_Howe' })
      const [seconds, micros] = await redis.time()
      const nowUs = Number(seconds) * 1e6 + Number(micros)
      const ms = await givenTtl(limit, 1, nowUs)
      const [, , , , , toUs = 0] = limit.wireAt?.(nowUs) ?? []
      expect(Math.abs(ms - (toUs - nowUs) / 1000)).toBeLessThan(50)
    },
  )

  it('never overflows: a year’s bucket of the largest burst (traefik/traefik#8235)', async () => {
    expect(() => tokenBucket({ limit: 1, period: '30d', burst: 1_000_000 })).toThrow(/these fit: burst 3474 or less/)
    expect(() => leakyBucket({ limit: 1, period: '30d', queue: 1_000_000 })).toThrow(/these fit: queue 3473 or less/)
    for (const limit of [
      tokenBucket({ limit: 1, period: '30d', burst: 3474 }),
      leakyBucket({ limit: 1, period: '30d', queue: 3473 }),
      leakyBucket({ limit: 1, period: '365d' }),
      concurrency({ limit: 10_000, ttl: '3660d' }),
      tokenBucket({ limit: 1, period: '365d' }),
      tokenBucket({ limit: 120, period: '1s' }),
    ]) {
      const full = limit.capacity
      const ms = await givenTtl(limit, full)
      expect(ms).toBe(Math.ceil(limit.spanUs / 1000) + 1)
      await redis.flushall()
      expect((await check(limit, 'ann', full)).allowed).toBe(true)
      expect((await check(limit, 'ann', full)).allowed).toBe(false)
      await redis.flushall()
    }
  })

  it('stands on every key that the limiter makes, and all are gone after it (upstash/ratelimit-js#95)', async () => {
    const limits = [...both(5, '300ms'), ...sliding(5, '300ms')]
    for (const calls of [1, 2, 50]) {
      for (let i = 0; i < calls; i++) for (const limit of limits) await check(limit, `caller${i % 7}`)
      for (const key of await redis.keys('*')) {
        expect(key).toMatch(/^expiry:/)
        expect(await redis.pttl(key)).not.toBe(-1)
      }
    }
    await sleep(350)
    expect(await redis.keys('*')).toEqual([])
  })

  it('stands on every key that an operation leaves, of ids, holds, blocks and beginnings too (redisson/redisson#4663)', async () => {
    const empty = tokenBucket({ limit: 1000, period: '1s', burst: 5, initial: 'empty' })
    const limits = [...both(5, '300ms'), ...sliding(5, '300ms'), leakyBucket({ limit: 5, period: '300ms' }), empty]
    const slots = concurrency({ limit: 5, ttl: '300ms' })
    await check(empty)
    await sleep(10)
    for (const limit of limits) {
      const item = [{ name: limit.algorithm, limit, key: 'ann' }]
      const { receipt } = await engine.check(item)
      await engine.refund(item, { id: 'twice', receipt })
      await engine.reserve(item, { id: 'lapses', holdMs: 300 })
      await (await engine.reserve(item, { id: 'settled' })).reservation?.commit(0)
      await engine.acquire(item, { timeoutMs: 0 })
      await engine.takeUpTo(item, 5)
      await engine.block([{ ...item[0], key: 'bob' } as CheckItem], { durationMs: 300 })
    }
    await check(slots)
    const keys = await redis.keys('*')
    expect(keys.length).toBeGreaterThanOrEqual(2 * limits.length)
    for (const key of keys) expect([key, (await redis.pttl(key)) > 0]).toEqual([key, true])
    // Settled ids are known for a minute; nothing lasts longer but what says since when a rule is, one key a limit.
    for (const key of keys.filter((each) => !each.includes('~:since:')))
      expect(await redis.pttl(key)).toBeLessThanOrEqual(61_000)
    await sleep(350)
    expect((await redis.keys('*bob')).concat(await redis.keys('*concurrency*'))).toEqual([])
  })

  it('is not extended by a peek or a question, and no key is made for one (upstash/ratelimit-js#111)', async () => {
    for (const limit of [...both(2, '1m'), ...sliding(2, '1m')]) {
      for (let i = 0; i < 50; i++) await Promise.all([peek(limit, 'unseen'), check(limit, 'unseen', 0)])
      expect(await redis.exists(keyOf(limit, 'unseen'))).toBe(0)
      await check(limit, 'ann', 2)
      const before = await redis.call('PEXPIRETIME', keyOf(limit))
      const raw = await redis.getBuffer(keyOf(limit))
      for (let i = 0; i < 50; i++) await Promise.all([peek(limit), check(limit, 'ann', 0), check(limit)])
      expect(await redis.call('PEXPIRETIME', keyOf(limit))).toBe(before)
      expect(await redis.getBuffer(keyOf(limit))).toEqual(raw)
    }
  })

  it('says what the reset says, of a sliding window and a sliding log (upstash/ratelimit-js#59)', async () => {
    for (const limit of sliding(5, '10s')) {
      const { limits } = await check(limit)
      const resetMs = limits[0]?.resetAfterMs as number
      expect(Math.abs(resetMs - (await ttl(limit)))).toBeLessThan(1000)
    }
  })

  it('is not extended by refused costs of any size (upstash/ratelimit-js PR#156)', async () => {
    const limit = tokenBucket({ limit: 1, period: '10s', burst: 5 })
    await check(limit, 'ann', 3)
    for (const cost of [5, 1_000_000, Number.MAX_SAFE_INTEGER])
      expect((await check(limit, 'ann', cost)).allowed).toBe(false)
    expect(await ttl(limit)).toBeLessThanOrEqual(30_001)
  })
})
