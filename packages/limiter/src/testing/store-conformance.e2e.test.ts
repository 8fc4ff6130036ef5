import { Redis as Ioredis5 } from 'ioredis-5'
import { Redis as Ioredis6 } from 'ioredis-6'
import { createClient as createClient5 } from 'redis-5'
import { createClient as createClient6 } from 'redis-6'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import type { RedisClient } from '../stores/redis/index.ts'
import { redisStoreOnClock } from './redis-on-clock.ts'
import { storeConformance } from './store-conformance.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

/** Clients that were never connected: the store makes its own connection from their settings. */
const clients: Record<string, () => RedisClient> = {
  'ioredis 5': () => new Ioredis5(server.url, { lazyConnect: true }),
  'ioredis 6': () => new Ioredis6(server.url, { lazyConnect: true }),
  'node-redis 5': () => createClient5({ url: server.url }),
  'node-redis 5 with RESP3': () => createClient5({ url: server.url, RESP: 3 }),
  'node-redis 6': () => createClient6({ url: server.url }),
  'node-redis 6 with RESP2': () => createClient6({ url: server.url, RESP: 2 }),
}

let stores = 0

describe.each(Object.entries(clients))('the Redis store through %s', (_, client) => {
  const cases = storeConformance((clock) => redisStoreOnClock(client(), clock, { prefix: `conformance-${++stores}` }))
  for (const { name, run } of cases) it(name, run)
})
