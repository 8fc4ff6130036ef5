import { type CheckItem, createEngine, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-5'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'

const CALLS = 30
/** In one batch. */
const MANY = 64

let server: RedisServer
let redis: Redis
let store: ReturnType<typeof redisStore>
let engine: ReturnType<typeof createEngine>
let ids = 0

const limit = tokenBucket({ limit: 1_000_000, period: '1h' })
const item: CheckItem[] = [{ name: 'held', limit, key: 'k' }]
const reserve = (id = `id${ids++}`) => engine.reserve(item, { id, holdMs: 3_600_000 })

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
  store = redisStore(new Redis(server.url, { lazyConnect: true }))
  engine = createEngine({ store, timeoutMs: 10_000 })
})

afterAll(async () => {
  await engine.close()
  await store.close()
  redis.disconnect()
  await server.stop()
})

async function hold(count: number): Promise<void> {
  await redis.flushall()
  for (let held = 0; held < count; held += MANY) await Promise.all(Array.from({ length: MANY }, () => reserve()))
}

/** What one call of the script takes in the server, in µs, on average. */
async function perCall(call: () => Promise<unknown>): Promise<number> {
  await redis.config('RESETSTAT')
  for (let i = 0; i < CALLS; i++) await call()
  const [, calls, us] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await redis.info('commandstats')) ?? []
  return Number(us) / Number(calls)
}

const batchOf = (call: (i: number) => Promise<unknown>) => () =>
  Promise.all(Array.from({ length: MANY }, (_, i) => call(i)))

/** Bounds are for a machine on which other things run; the figures are printed. */
describe.each([1024, 4096])('One call of the script on a key with %d holds (go-redis/redis_rate#30)', (holds) => {
  it.each([
    ['a check', 3000, () => engine.check(item)],
    ['a peek', 3000, () => engine.peek(item)],
    ['an extension', 8000, () => engine.reservation(item, `id${ids - 1}`).extend(3_600_000)],
    ['a refund with an id', 8000, () => engine.refund(item, { id: `refund${ids++}` })],
    ['64 checks', 5000, batchOf(() => engine.check(item))],
    ['64 extensions', 30_000, batchOf((i) => engine.reservation(item, `id${ids - 1 - i}`).extend(3_600_000))],
  ] as [string, number, () => Promise<unknown>][])('%s', async (name, mostUs, call) => {
    await hold(holds)
    const us = await perCall(call)
    console.info(`${holds} holds, ${name}: ${Math.round(us)} µs of the server's time a call`)
    expect(us).toBeLessThan(mostUs)
  })
})
