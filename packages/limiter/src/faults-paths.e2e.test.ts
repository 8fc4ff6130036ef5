import fc from 'fast-check'
import { Redis } from 'ioredis-6'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  calendars,
  fixedWindows,
  leakyBuckets,
  slidingLogs,
  slidingWindows,
  slots,
  smallBuckets,
} from '../../../test/limit-arbitraries.ts'
import { freePort, type RedisServer, startRedis } from '../../../test/redis.ts'
import { ALL_CLIENTS, CLUSTER_CLIENTS } from '../../../test/redis-clients.ts'
import { type ClusterOfRedis, startRedisCluster } from '../../../test/redis-cluster.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import type { Decision } from './decision.ts'
import { createEngine, type Engine, type EngineOptions } from './engine.ts'
import type { Limit } from './limit.ts'
import type { Store } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { redisStore } from './stores/redis/index.ts'
import { fakeClock, redisStoreOnClock } from './testing/index.ts'

let server: RedisServer
let redis: Redis
let cluster: ClusterOfRedis
let deadPort: number

beforeAll(async () => {
  ;[server, cluster, deadPort] = await Promise.all([startRedis(), startRedisCluster([], 0), freePort()])
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis.disconnect()
  await Promise.all([server.stop(), cluster.stop()])
})

const ends: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

function engineOn(store: Store, options: Partial<EngineOptions> = {}): Engine {
  const engine = createEngine({ store, timeoutMs: 10_000, ...options })
  ends.push(
    () => store.close(),
    () => engine.close(),
  )
  return engine
}

/** Each holds so many units, and is unused again when so many ms have passed. */
const ALGORITHMS: readonly [string, (units: number, ms: number) => Limit][] = [
  ['token bucket', (limit, period) => tokenBucket({ limit, period })],
  ['leaky bucket', (limit, period) => leakyBucket({ limit, period, queue: limit - 1 })],
  ['fixed window', (limit, period) => fixedWindow({ limit, period, align: 'first-hit' })],
  ['sliding window', (limit, period) => slidingWindow({ limit, period })],
  ['sliding log', (limit, period) => slidingLog({ limit, period })],
  ['concurrency', (limit, ttl) => concurrency({ limit, ttl })],
]
const DAY_MS = 86_400_000

/** Every way on which a decision can be made, and what it then says of its source. */
const PATHS: readonly (readonly [name: string, open: () => Store, source: string])[] = [
  ['in memory', () => memoryStore(), 'store'],
  ...ALL_CLIENTS.map(({ name, make }) => [`in Redis by ${name}`, () => redisStore(make(server.url)), 'store'] as const),
  ...CLUSTER_CLIENTS.map(
    ({ name, make }) =>
      [`in a cluster by ${name}`, () => redisStore(make(cluster.servers.map(({ url }) => url))), 'store'] as const,
  ),
  ['without Redis', () => redisStore(new Redis({ port: deadPort, lazyConnect: true })), 'local'],
]

let rules = 0

describe.each(PATHS)('decided %s,', (place, open, source) => {
  it.each([{}, false] as const)(
    'exactly N pass, N − 1 to 0 remain, then 0, with a deny cache of %j (upstash/ratelimit-js PR#157, koajs/ratelimit#56)',
    async (denyCache) => {
      const engine = engineOn(open(), { denyCache })
      let repeated = 0
      for (const [name, of] of ALGORITHMS) {
        for (const n of [1, 2, 10]) {
          const items = [{ rule: `r${++rules}`, name: 'l', limit: of(n, DAY_MS), key: 'ann' }]
          const seen: unknown[] = []
          for (let i = 0; i < n + 4; i++) {
            const decision = await engine.check(items)
            seen.push([decision.allowed, decision.limits[0]?.remaining])
            if (decision.source === 'deny-cache') repeated += 1
            if (decision.allowed || denyCache === false) expect(decision.source).toBe(source)
          }
          const passed = Array.from({ length: n }, (__, i) => [true, n - 1 - i])
          expect(seen, `${name} of ${n}`).toEqual([...passed, ...Array(4).fill([false, 0])])
        }
      }
      if (denyCache !== false && place !== 'in memory' && source === 'store') expect(repeated).toBeGreaterThan(0)
    },
  )

  it('each hit counts once, however they fall together (Kong/kong PR#11859)', async () => {
    const store = open()
    const [one, other] = [engineOn(store), engineOn(store)]
    // Without Redis each instance has a budget of its own.
    const engines = source === 'local' ? [one] : [one, other]
    for (const [name, of] of ALGORITHMS) {
      for (const together of [1, 3, 10]) {
        const items = [{ rule: `r${++rules}`, name: 'l', limit: of(100, DAY_MS), key: 'ann' }]
        const hit = (i: number) => (engines[i % engines.length] as Engine).check(items)
        for (let i = 0; i < 10; i += together) {
          const size = Math.min(together, 10 - i)
          await Promise.all(Array.from({ length: size }, (__, j) => hit(i + j)))
        }
        expect((await one.peek(items)).limits[0]?.remaining, `${name}, ${together} together`).toBe(90)
      }
    }
  })
})

/** Rules, keys and costs, with waits of every size, over limits of one algorithm. */
function traces(limits: fc.Arbitrary<Limit>) {
  const item = fc.record({ rule: fc.nat(2), limit: fc.nat(1), key: fc.nat(2), cost: fc.nat(5) })
  const items = fc.uniqueArray(item, { minLength: 1, maxLength: 3, selector: (each) => `${each.rule} ${each.limit}` })
  const step = fc.record({ waitPart: fc.constantFrom(0, 0, 0.001, 0.3, 1), peek: fc.boolean(), items })
  return fc.record({
    limits: fc.tuple(limits, limits),
    steps: fc.array(step, { minLength: 1, maxLength: 30 }),
  })
}

const KINDS: readonly [string, fc.Arbitrary<Limit>][] = [
  ['slots', slots],
  ['token buckets', smallBuckets],
  ['leaky buckets', leakyBuckets],
  ['fixed windows', fixedWindows],
  ['calendar windows', calendars],
  ['sliding windows', slidingWindows],
  ['sliding logs', slidingLogs],
]

/** Without what is made for its holder alone. */
const said = ({ receipt: _, release, renew, ...rest }: Decision) => ({
  ...rest,
  holds: [release, renew].map((call) => typeof call),
})

describe('memory and Redis', () => {
  it.each(KINDS)(
    'give the same decisions, to the last number, for %s of several rules and keys (fastify/fastify-rate-limit#215, traefik/traefik#13706)',
    async (_, limits) => {
      const clients = ALL_CLIENTS.filter(({ name }) => ['ioredis 6', 'node-redis 6'].includes(name))
      const property = fc.asyncProperty(traces(limits), fc.nat(1), async (trace, by) => {
        await redis.flushall()
        const clock = fakeClock()
        const inRedis = redisStoreOnClock((clients[by] as (typeof clients)[number]).make(server.url), clock)
        const engines = [inRedis, memoryStore({ clock })].map((store) => engineOn(store)) as [Engine, Engine]
        for (const { waitPart, peek, items } of trace.steps) {
          clock.advanceUs(Math.floor((trace.limits[0] as Limit).spanUs * waitPart))
          const asked = items.map(({ rule, limit, key, cost }) => ({
            rule: `rule${rule}`,
            name: `limit${limit}`,
            limit: trace.limits[limit] as Limit,
            key: `key${key}`,
            cost: Math.min(cost, 4),
          }))
          const call = peek ? 'peek' : 'check'
          const [one, other] = [await engines[0][call](asked), await engines[1][call](asked)]
          expect(said(one)).toEqual(said(other))
        }
        for (const end of ends.splice(0).reverse()) await end()
      })
      await fc.assert(property, { numRuns: 25 })
    },
  )
})
