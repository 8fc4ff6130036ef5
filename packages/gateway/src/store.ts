import type { RuleFile } from '@headgate/rules'
import { memoryStore, type Store } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis'

/**
 * The store that a rule file names: in this process, or Redis. Nobody waits for Redis to be there: the
 * store connects by itself as soon as it can, and until then the rules' `onStoreFailure` decides.
 * Close it when done.
 */
export function createStore({ store, prefix }: Pick<RuleFile, 'store' | 'prefix'>): Store {
  if (store.kind === 'memory') return memoryStore()
  // Only a bearer of settings: the store makes a connection of its own from it.
  return redisStore(new Redis(store.url, { lazyConnect: true }), { prefix })
}
