import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CheckItem,
  concurrency,
  createEngine,
  type Engine,
  type EngineOptions,
  fixedWindow,
  type Limit,
  leakyBucket,
  type Store,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-6'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../test/load.ts'
import { freePort, startRedis } from '../../../../test/redis.ts'

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

const storeAt = (port: number, prefix = 'rate_limit') => redisStore(new Redis({ port, lazyConnect: true }), { prefix })

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

describe('an outage that is longer than a window', () => {
  it.each(ALGORITHMS)(
    'leaves nothing of a %s to be charged when Redis is back (Kuadrant/limitador PR#288)',
    async (_, of) => {
      const own = await startRedis()
      ends.push(() => own.stop())
      const store = storeAt(own.port)
      const engine = engineOn(store, { timeoutMs: 50 })
      const limit = of(20, 500)
      const item = (key: string) => [{ rule: 'r', name: 'l', limit, key }]
      const back = () => until('Redis', async () => (await engine.check(item('back'))).source === 'store')
      await back()
      for (let i = 0; i < 20; i++) await engine.check(item('ann'))
      own.pause()
      let local = 0
      for (let i = 0; i < 40; i++) if ((await engine.check(item('ann'))).source === 'local') local += 1
      expect(local).toBeGreaterThan(0)
      await sleep(1100)
      own.resume()
      await back()
      const decisions = await Promise.all(Array.from({ length: 20 }, () => engine.check(item('ann'))))
      expect(decisions.map(({ allowed, source }) => [allowed, source])).toEqual(Array(20).fill([true, 'store']))
    },
  )
})

describe('two rules, each on a store of its own,', () => {
  it('count there and nowhere else, each by its own options (Kong/kong PR#12003)', async () => {
    const [server, deadPort] = await Promise.all([startRedis(), freePort()])
    ends.push(() => server.stop())
    const [one, other] = ['one', 'other'].map((prefix) => engineOn(storeAt(server.port, prefix))) as [Engine, Engine]
    const away = engineOn(storeAt(deadPort), { timeoutMs: 20 })
    for (const [name, of] of ALGORITHMS) {
      const item = (limit: Limit): CheckItem[] => [
        { rule: name.replace(' ', '-'), name: 'own', limit, key: 'ann', cost: 2 },
      ]
      await one.check(item(of(10, DAY_MS)))
      await other.check(item(of(5, 3_600_000)))
      await away.check(item(of(4, 60_000)))
      const left = async (engine: Engine, limit: Limit) => (await engine.peek(item(limit))).limits[0]?.remaining
      expect([
        await left(one, of(10, DAY_MS)),
        await left(other, of(5, 3_600_000)),
        await left(away, of(4, 60_000)),
      ]).toEqual([8, 3, 2])
    }
  })
})

describe('four instances that do not reach Redis', () => {
  it.each(ALGORITHMS)(
    'admit one budget of a %s together, and say once that they are alone (litellm#35533)',
    async (_, of) => {
      const deadPort = await freePort()
      const told: string[] = []
      const fleet = Array.from({ length: 4 }, (__, i) => {
        const engine = engineOn(storeAt(deadPort), { instances: 4 })
        engine.on('degraded', () => told.push(`${i} degraded`))
        engine.on('recovered', () => told.push(`${i} recovered`))
        return engine
      })
      const items = [{ name: 'l', limit: of(100, DAY_MS), key: 'ann' }]
      let admitted = 0
      for (let i = 0; i < 400; i++) {
        const decision = await (fleet[i % 4] as Engine).check(items)
        expect([decision.source, decision.degraded]).toEqual(['local', true])
        if (decision.allowed) admitted += 1
      }
      expect(admitted).toBe(100)
      expect(told.sort()).toEqual(['0 degraded', '1 degraded', '2 degraded', '3 degraded'])
    },
  )
})
