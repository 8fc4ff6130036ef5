import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../../test/fresh-build.ts'
import { type InstanceResult, partlyAwayMs, startInstance } from '../../../../test/instances.ts'
import { freePort, startRedis } from '../../../../test/redis.ts'
import { startProxy } from '../../../../test/tcp-proxy.ts'

const ends: (() => unknown)[] = []

beforeAll(assertFreshBuild)
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const total = (results: readonly InstanceResult[], rule: string, source?: 'store' | 'local') =>
  results.reduce((sum, { admitted }) => {
    const { store, local } = admitted[rule] as { store: number; local: number }
    return sum + (source === undefined ? store + local : source === 'store' ? store : local)
  }, 0)

function healthy(results: readonly InstanceResult[]): void {
  for (const { failures, crashes, events, asked } of results) {
    expect({ failures, crashes }).toEqual({ failures: 0, crashes: 0 })
    expect(asked).toBeGreaterThan(0)
    // One event a transition, and errors by the second and kind, however many were asked.
    expect(events.degraded - events.recovered).toBeLessThanOrEqual(1)
    expect(events.error).toBeLessThanOrEqual(4 * (events.degraded + 1))
  }
}

describe('Four instances', () => {
  it('admit one budget together when none of them reaches Redis (litellm#35533)', async () => {
    const rules = {
      window: { algorithm: 'fixed-window', limit: 100, period: '1h', align: 'first-hit' },
      bucket: { algorithm: 'token-bucket', limit: 100, period: '1h' },
    } as const
    const url = `redis://127.0.0.1:${await freePort()}`
    const fleet = await Promise.all(
      Array.from({ length: 4 }, () => startInstance({ url, instances: 4, perSecond: 200, rules })),
    )
    await sleep(3000)
    const results = await Promise.all(fleet.map((each) => each.stop()))
    healthy(results)
    expect(total(results, 'window')).toBe(100)
    expect(total(results, 'bucket')).toBe(100)
  })

  it('stay within two bursts and the law when two of them are cut off', async () => {
    const limit = 100
    const rules = { bucket: { algorithm: 'token-bucket', limit, period: '1s' } } as const
    const redis = await startRedis()
    ends.push(() => redis.stop())
    const proxy = await startProxy(redis.port)
    ends.push(() => proxy.close())
    const begunMs = Date.now()
    const fleet = await Promise.all(
      [redis.url, redis.url, `redis://127.0.0.1:${proxy.port}`, `redis://127.0.0.1:${proxy.port}`].map((url) =>
        startInstance({ url, instances: 4, perSecond: 200, rules }),
      ),
    )
    await sleep(1500)
    await proxy.refuse()
    await sleep(3000)
    await proxy.accept()
    await sleep(1500)
    const results = await Promise.all(fleet.map((each) => each.stop()))
    const tookMs = Date.now() - begunMs
    healthy(results)
    const law = limit + (limit * tookMs) / 1000
    const partly = partlyAwayMs(results)
    expect(partly).toBeGreaterThan(2500)
    expect(total(results, 'bucket')).toBeLessThanOrEqual(law + 2 * limit + (limit * partly) / 1000)
    // Each kept to a quarter of burst and rate.
    for (const { admitted } of results) {
      expect(admitted.bucket?.local).toBeLessThanOrEqual((limit + (limit * tookMs) / 1000) / 4)
    }
    expect(total(results, 'bucket', 'local')).toBeGreaterThan(limit / 2)
  })

  it('stay within the bound while Redis comes and goes every two seconds, for a minute', async () => {
    const rules = {
      minute: { algorithm: 'token-bucket', limit: 60, period: '1m' },
      second: { algorithm: 'token-bucket', limit: 50, period: '1s' },
    } as const
    const redis = await startRedis()
    ends.push(() => redis.stop())
    const begunMs = Date.now()
    const fleet = await Promise.all(
      Array.from({ length: 4 }, () => startInstance({ url: redis.url, instances: 4, perSecond: 50, rules })),
    )
    for (let i = 0; i < 15; i++) {
      await sleep(2000)
      redis.pause()
      await sleep(2000)
      redis.resume()
    }
    await sleep(2000)
    const results = await Promise.all(fleet.map((each) => each.stop()))
    const tookMs = Date.now() - begunMs
    healthy(results)
    const partly = partlyAwayMs(results)
    for (const { events } of results) expect(events.degraded).toBeGreaterThanOrEqual(15)
    const lawOf = ({ limit, period }: { limit: number; period: string }) => {
      const perMs = limit / (period === '1s' ? 1000 : 60_000)
      return { law: limit + perMs * tookMs, partly: perMs * partly }
    }
    const minute = lawOf(rules.minute)
    expect(total(results, 'minute')).toBeLessThanOrEqual(minute.law + 2 * rules.minute.limit + minute.partly)
    // Store and shares each keep to the law over the whole run, so no number of outages gives more than that twice.
    for (const rule of ['minute', 'second'] as const) {
      const { law } = lawOf(rules[rule])
      expect(total(results, rule, 'store')).toBeLessThanOrEqual(law)
      expect(total(results, rule, 'local')).toBeLessThanOrEqual(law)
    }
    expect(total(results, 'second')).toBeGreaterThan(lawOf(rules.second).law * 0.9)
  }, 120_000)
})
