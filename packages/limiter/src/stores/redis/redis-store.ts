import { HeadgateError, InvalidArgumentError, show } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import type { RemoteStore } from '../../store.ts'
import type { ClusterClient } from './cluster/client.ts'
import { ClusterStore } from './cluster/cluster-store.ts'
import { type IoredisCluster, ioredisCluster, isIoredisCluster } from './cluster/ioredis-cluster.ts'
import { isNodeRedisCluster, type NodeRedisCluster, nodeRedisCluster } from './cluster/node-redis-cluster.ts'
import type { OpenLink } from './connection.ts'
import { type IoredisClient, isIoredis, openIoredis } from './ioredis.ts'
import { isNodeRedis, type NodeRedisClient, openNodeRedis } from './node-redis.ts'
import { DECIDE, RedisStore, type Script } from './store.ts'

export type RedisClient = IoredisClient | NodeRedisClient

export type RedisCluster = IoredisCluster | NodeRedisCluster

export interface RedisStoreOptions {
  /** Begins every key, before a colon; default `rate_limit`. Letters, digits and `. _ : -`; at most 64. */
  prefix?: string
}

const PREFIX = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/

/**
 * Counters in Redis, shared by all instances: one round trip a decision, many decisions a round trip.
 *
 * The store makes a connection of its own from the client's settings, one that never sends a command
 * twice and never queues; the client itself is not touched. Close the store when done.
 * @param client an ioredis 5 or 6, or node-redis 5 or 6 client of a single server or of a Cluster, connected or not
 * @throws HEADGATE_CLIENT_UNKNOWN for any other client
 */
export function redisStore(client: RedisClient | RedisCluster, options: RedisStoreOptions = {}): RemoteStore {
  return redisStoreOn(client, options, DECIDE)
}

/** The same with another build of the script. */
export function redisStoreOn(
  client: RedisClient | RedisCluster,
  options: RedisStoreOptions,
  script: Script,
): RemoteStore {
  refuseUnknown(options, ['prefix'], 'redisStore')
  const { prefix = 'rate_limit' } = options
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new InvalidArgumentError(
      'prefix',
      `${show(prefix)} is not a letter or digit, then up to 63 of A-Z a-z 0-9 . _ : -`,
    )
  }
  const cluster = clusterOf(client)
  const store =
    cluster === undefined ? new RedisStore(opener(client), prefix, script) : new ClusterStore(cluster, prefix, script)
  const ownPrefix = keyPrefixOf(client)
  if (ownPrefix !== undefined && `${ownPrefix}` !== '') {
    process.emitWarning(
      `the client's key prefix ${show(`${ownPrefix}`)} is not used for counters, so that every tool sees the same keys; set prefix: instead`,
      { type: 'HeadgateWarning', code: 'HEADGATE_KEY_PREFIX' },
    )
  }
  return store
}

function clusterOf(client: RedisClient | RedisCluster): ClusterClient | undefined {
  if (typeof client !== 'object' || client === null) return undefined
  if (isIoredisCluster(client)) return ioredisCluster(client)
  return isNodeRedisCluster(client) ? nodeRedisCluster(client) : undefined
}

function keyPrefixOf(client: object): unknown {
  const { options } = client as { options?: { keyPrefix?: unknown } }
  return options?.keyPrefix
}

function opener(client: object): OpenLink {
  if (typeof client === 'object' && client !== null) {
    if (isIoredis(client)) return (events, timeoutMs) => openIoredis(client, events, timeoutMs)
    if (isNodeRedis(client)) return (events, timeoutMs) => openNodeRedis(client, events, timeoutMs)
  }
  throw unknownClient(
    `${show(client)} is of no known shape; give a client of ioredis 5 or 6, or of node-redis 5 or 6, or one of their cluster clients`,
  )
}

function unknownClient(problem: string): HeadgateError {
  return new HeadgateError('HEADGATE_CLIENT_UNKNOWN', `client: ${problem}`)
}
