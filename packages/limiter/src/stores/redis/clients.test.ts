import { GlideClient } from '@valkey/valkey-glide'
import { Redis as Ioredis5 } from 'ioredis-5'
import { Redis as Ioredis6 } from 'ioredis-6'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient as createClient5, createSentinel as createSentinel5 } from 'redis-5'
import { createClient as createClient6, createSentinel as createSentinel6 } from 'redis-6'
import { describe, expect, it } from 'vitest'
import type { RemoteStore } from '../../store.ts'
import { redisStore } from './index.ts'

/** Never called: that it compiles is what is tested (`npm run check` does). No cast, no annotation. */
async function everyClient(): Promise<RemoteStore[]> {
  const sentinels = { name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 26379 }] }
  const sentinel5 = createSentinel5(sentinels)
  return [
    redisStore(new Ioredis5()),
    redisStore(new Ioredis5('redis://127.0.0.1:6379/1', { keyPrefix: 'own:', stringNumbers: true })),
    redisStore(new Ioredis6()),
    redisStore(new Ioredis6({ host: '127.0.0.1', lazyConnect: true }), { prefix: 'rate_limit' }),
    redisStore(createClient5()),
    redisStore(createClient5({ url: 'redis://127.0.0.1:6379', RESP: 3 })),
    redisStore(createClient6()),
    redisStore(createClient6({ url: 'redis://127.0.0.1:6379', RESP: 2 }), { prefix: 'rate_limit' }),
    redisStore(createSentinel6(sentinels)),
    redisStore({ send: (args) => sentinel5.sendCommand(false, [...args]) }),
    redisStore(new Iovalkey()),
    redisStore(new Iovalkey({ sentinels: [{ host: '127.0.0.1' }], name: 'main' })),
    redisStore(await GlideClient.createClient({ addresses: [{ host: '127.0.0.1' }] })),
  ]
}

describe('the types of redisStore', () => {
  it('take a client of each library as it is', () => {
    expect(everyClient).toBeTypeOf('function')
  })

  it('take nothing else', () => {
    // @ts-expect-error: a URL is not a client
    expect(() => redisStore('redis://127.0.0.1:6379')).toThrow(/^client: "redis:/)
    // @ts-expect-error: neither is an object of another kind
    expect(() => redisStore({ get: () => null })).toThrow(
      /^client: an object is of no known shape; give a client of ioredis 5 or 6, iovalkey, .* or \{ send \} for any other/,
    )
  })
})
