import { Redis as Ioredis5 } from 'ioredis-5'
import { Redis as Ioredis6 } from 'ioredis-6'
import { createClient as createClient5 } from 'redis-5'
import { createClient as createClient6 } from 'redis-6'
import { describe, expect, it } from 'vitest'
import type { RemoteStore } from '../../store.ts'
import { redisStore } from './index.ts'

/** Never called: that it compiles is what is tested (`npm run check` does). No cast, no annotation. */
function everyClient(): RemoteStore[] {
  return [
    redisStore(new Ioredis5()),
    redisStore(new Ioredis5('redis://127.0.0.1:6379/1', { keyPrefix: 'own:', stringNumbers: true })),
    redisStore(new Ioredis6()),
    redisStore(new Ioredis6({ host: '127.0.0.1', lazyConnect: true }), { prefix: 'rate_limit' }),
    redisStore(createClient5()),
    redisStore(createClient5({ url: 'redis://127.0.0.1:6379', RESP: 3 })),
    redisStore(createClient6()),
    redisStore(createClient6({ url: 'redis://127.0.0.1:6379', RESP: 2 }), { prefix: 'rate_limit' }),
  ]
}

describe('the types of redisStore', () => {
  it('take a client of ioredis 5 and 6 and of node-redis 5 and 6 as it is', () => {
    expect(everyClient).toBeTypeOf('function')
  })

  it('take nothing else', () => {
    // @ts-expect-error: a URL is not a client
    expect(() => redisStore('redis://127.0.0.1:6379')).toThrow(/^client: "redis:/)
    // @ts-expect-error: neither is an object of another kind
    expect(() => redisStore({ get: () => null })).toThrow(
      /^client: an object is of no known shape; give a client of ioredis 5 or 6/,
    )
  })
})
