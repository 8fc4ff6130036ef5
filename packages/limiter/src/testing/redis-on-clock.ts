import type { Clock } from '../clock.ts'
import type { RemoteStore } from '../store.ts'
import {
  type RedisClient,
  type RedisCluster,
  type RedisStoreOptions,
  redisStoreOn,
} from '../stores/redis/redis-store.ts'
import { DECIDE_TEST_LUA, DECIDE_TEST_SHA1 } from './decide-test.generated.ts'

/**
 * `redisStore` on a clock of the test's: the same script, but for where it takes its time from. Keys
 * live eleven days longer than they mean anything, so that real time cannot expire them.
 */
export function redisStoreOnClock(
  client: RedisClient | RedisCluster,
  clock: Clock,
  options: RedisStoreOptions = {},
): RemoteStore {
  return redisStoreOn(client, options, {
    text: DECIDE_TEST_LUA,
    sha1: DECIDE_TEST_SHA1,
    extraArgs: () => [`${clock()}`],
    onServerClock: false,
  })
}
