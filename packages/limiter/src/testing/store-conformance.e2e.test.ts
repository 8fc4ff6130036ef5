import { GlideClient, ProtocolVersion } from '@valkey/valkey-glide'
import { Redis as Ioredis5 } from 'ioredis-5'
import { Redis as Ioredis6 } from 'ioredis-6'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient as createClient5 } from 'redis-5'
import { createClient as createClient6 } from 'redis-6'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import { glideSettings } from '../../../../test/redis-clients.ts'
import { SERVERS } from '../../../../test/redis-servers.ts'
import type { RedisClient } from '../stores/redis/index.ts'
import { redisStoreOnClock } from './redis-on-clock.ts'
import { storeConformance } from './store-conformance.ts'

/** Clients that were never connected: the store makes its own connection from their settings. */
const clients: Record<string, (url: string) => RedisClient> = {
  'ioredis 5': (url) => new Ioredis5(url, { lazyConnect: true }),
  'ioredis 6': (url) => new Ioredis6(url, { lazyConnect: true }),
  'ioredis 6 with RESP2': (url) => new Ioredis6(url, { lazyConnect: true, protocol: 2 }),
  iovalkey: (url) => new Iovalkey(url, { lazyConnect: true }),
  'node-redis 5': (url) => createClient5({ url }),
  'node-redis 5 with RESP3': (url) => createClient5({ url, RESP: 3 }),
  'node-redis 6': (url) => createClient6({ url }),
  'node-redis 6 with RESP2': (url) => createClient6({ url, RESP: 2 }),
}

/** Others that are connected. */
const connected: Record<string, (url: string) => Promise<Connected>> = {
  'Valkey GLIDE': async (url) => {
    const client = await GlideClient.createClient(glideSettings(url))
    return { client, end: () => client.close() }
  },
  'Valkey GLIDE with RESP2': async (url) => {
    const client = await GlideClient.createClient({ ...glideSettings(url), protocol: ProtocolVersion.RESP2 })
    return { client, end: () => client.close() }
  },
  'any other client': async (url) => {
    const client = new Ioredis6(url, { lazyConnect: true })
    return {
      client: { send: ([command = '', ...args]) => client.call(command, ...args) },
      end: () => client.disconnect(),
    }
  },
}

interface Connected {
  readonly client: RedisClient
  end(): void
}

let stores = 0
const prefix = () => ({ prefix: `conformance-${++stores}` })

describe.each(SERVERS)('On $name, the Redis store', ({ program, skipped }) => {
  let server: RedisServer

  beforeAll(async () => {
    if (!skipped) server = await startRedis([], undefined, program)
  })

  afterAll(() => server?.stop())

  describe.skipIf(skipped).each(Object.entries(clients))('through %s', (_, client) => {
    const cases = storeConformance((clock) => redisStoreOnClock(client(server.url), clock, prefix()))
    for (const { name, run } of cases) it(name, run)
  })

  describe.skipIf(skipped).each(Object.entries(connected))('through %s', (_, connect) => {
    let made: Connected
    beforeAll(async () => {
      made = await connect(server.url)
    })
    afterAll(() => made.end())

    const cases = storeConformance((clock) => redisStoreOnClock(made.client, clock, prefix()))
    for (const { name, run } of cases) it(name, run)
  })
})
