import { Redis } from 'ioredis-5'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import { createEngine, fixedWindow, type Limit, tokenBucket } from '../index.ts'
import { redisStore } from '../stores/redis/index.ts'
import { rateLimitFields } from './fields.ts'

const RULE = { name: 'api', headers: 'legacy', disclose: false, globalLimits: [] } as const

let server: RedisServer
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port, { lazyConnect: true })
})

afterAll(async () => {
  client.disconnect()
  await server.stop()
})

describe('X-RateLimit-Reset', () => {
  it.each<[string, Limit]>([
    ['a window from the clock', fixedWindow({ limit: 5, period: '1h' })],
    ['a window from the first hit', fixedWindow({ limit: 5, period: '10m', align: 'first-hit' })],
    ['a bucket', tokenBucket({ limit: 5, period: '10m' })],
  ])('of %s is when the key expires in Redis, to a second (upstash/ratelimit-js#59)', async (name, limit) => {
    const store = redisStore(client, { prefix: 'reset' })
    const engine = createEngine({ store, timeoutMs: 5000 })
    const key = name.replaceAll(' ', '-')
    const decision = await engine.check([{ rule: 'api', name: 'user', limit, key, cost: 3 }])
    expect(decision.source).toBe('store')
    const reset = Number(new Map(rateLimitFields(decision, [RULE])).get('X-RateLimit-Reset'))
    const ttlMs = Number((await server.command('PTTL', `reset:api:user:${key}`)).slice(1))
    expect(ttlMs).toBeGreaterThan(0)
    expect(Math.abs(reset * 1000 - (Date.now() + ttlMs))).toBeLessThanOrEqual(1000)
    await engine.close()
    await store.close()
  })
})
