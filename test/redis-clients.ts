import { Redis as Redis5 } from 'ioredis-5'
import { Redis as Redis6 } from 'ioredis-6'
import { createClient as createClient5 } from 'redis-5'
import { createClient as createClient6 } from 'redis-6'

/** What the tests need of every client; whatever else it is, `redisStore` takes it. */
export interface TestClient {
  readonly name: string
  /** Not connected, and never told to: the store makes a connection of its own from its settings. */
  make(url: string): ClientOfStore
}

export type ClientOfStore = Redis5 | Redis6 | ReturnType<typeof createClient5> | ReturnType<typeof createClient6>

export const CLIENTS: readonly TestClient[] = [
  { name: 'ioredis 5', make: (url) => new Redis5(url, { lazyConnect: true }) },
  { name: 'ioredis 6', make: (url) => new Redis6(url, { lazyConnect: true }) },
  { name: 'node-redis 5', make: (url) => createClient5({ url }) },
  { name: 'node-redis 6', make: (url) => createClient6({ url }) },
]
