import { HeadgateError, InvalidArgumentError, show } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import type { RemoteStore } from '../../store.ts'
import type { Subscribe } from './announcements.ts'
import type { ClusterClient } from './cluster/client.ts'
import { ClusterStore } from './cluster/cluster-store.ts'
import { glideCluster, isGlideCluster, type ValkeyGlideCluster } from './cluster/glide-cluster.ts'
import { type IoredisCluster, ioredisCluster, isIoredisCluster } from './cluster/ioredis-cluster.ts'
import { isNodeRedisCluster, type NodeRedisCluster, nodeRedisCluster } from './cluster/node-redis-cluster.ts'
import { isCommands, openCommands, type RedisCommands } from './commands.ts'
import type { OpenLink } from './connection.ts'
import { isGlide, openGlide, type ValkeyGlideClient } from './glide.ts'
import { type IoredisClient, isIoredis, listenIoredis, openIoredis, subscriberOfIoredis } from './ioredis.ts'
import { isNodeRedis, listenNodeRedis, listenOn, type NodeRedisClient, openNodeRedis } from './node-redis.ts'
import {
  canDuplicate,
  isNodeRedisSentinel,
  type NodeRedisSentinel,
  openNodeRedisSentinel,
} from './node-redis-sentinel.ts'
import { DECIDE, type Script } from './script.ts'
import { RedisStore } from './store.ts'

export type RedisClient = IoredisClient | NodeRedisClient | NodeRedisSentinel | ValkeyGlideClient | RedisCommands

const KNOWN =
  'a client of ioredis 5 or 6, iovalkey, node-redis 5 or 6 or Valkey GLIDE, one of their cluster clients, or { send } for any other'

export type RedisCluster = IoredisCluster | NodeRedisCluster | ValkeyGlideCluster

export interface RedisStoreOptions {
  /** Begins every key, before a colon; default `rate_limit`. Letters, digits and `. _ : -`; at most 64. */
  prefix?: string
  /**
   * A client of its own, connected by you, that hears of refusals that no longer hold; default: a connection made from the
   * first client's settings. One that listens to other channels too may serve.
   */
  subscriber?: RedisClient
}

const PREFIX = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/

/**
 * Counters in Redis, shared by all instances: one round trip a decision, many decisions a round trip.
 *
 * The store makes a connection of its own from the client's settings, one that never sends a command
 * twice and never queues; the client itself is not touched. Close the store when done.
 * @param client of ioredis, iovalkey, node-redis or Valkey GLIDE, also behind Sentinels (but for GLIDE), or of a Cluster,
 *   connected or not; or how to send commands by any other
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
  refuseUnknown(options, ['prefix', 'subscriber'], 'redisStore')
  const { prefix = 'rate_limit', subscriber } = options
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new InvalidArgumentError(
      'prefix',
      `${show(prefix)} is not a letter or digit, then up to 63 of A-Z a-z 0-9 . _ : -`,
    )
  }
  const cluster = clusterOf(client)
  const store =
    cluster === undefined
      ? new RedisStore(opener(client), prefix, script, { subscribe: subscribing(client, subscriber) })
      : new ClusterStore(
          cluster,
          prefix,
          script,
          subscriber === undefined ? undefined : subscribing(client, subscriber),
        )
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
  if (isNodeRedisCluster(client)) return nodeRedisCluster(client)
  return isGlideCluster(client) ? glideCluster(client) : undefined
}

/** GLIDE has none, and what `send` does to keys is the caller's. */
function keyPrefixOf(client: object): unknown {
  const { options, _keyPrefix } = client as { options?: { keyPrefix?: unknown }; _keyPrefix?: unknown }
  return options?.keyPrefix ?? _keyPrefix
}

function opener(client: object): OpenLink {
  if (typeof client === 'object' && client !== null) {
    if (isIoredis(client)) return (events, timeoutMs) => openIoredis(client, events, timeoutMs)
    if (isNodeRedisSentinel(client)) {
      if (canDuplicate(client)) return (events) => openNodeRedisSentinel(client, events)
      throw unknownClient(
        'a Sentinel of node-redis 5 keeps its settings to itself; give one of node-redis 6, or { send: (args) => sentinel.sendCommand(false, [...args]) }',
      )
    }
    if (isNodeRedis(client)) return (events, timeoutMs) => openNodeRedis(client, events, timeoutMs)
    if (isGlide(client)) return (events, timeoutMs) => openGlide(client, events, timeoutMs)
    if (isCommands(client)) return (events) => openCommands(client, events)
  }
  throw unknownClient(`${show(client)} is of no known shape; give ${KNOWN}`)
}

/** How changes are listened to: by the client that is given for it, else by one made like the other; undefined: not at all. */
function subscribing(client: object, subscriber: RedisClient | undefined): Subscribe | undefined {
  if (subscriber === undefined) {
    if (isIoredis(client)) return (...to) => listenIoredis(subscriberOfIoredis(client), false, ...to)
    if (isNodeRedis(client)) return (...to) => listenNodeRedis(client, ...to)
    return undefined
  }
  if (!isListener(subscriber)) {
    throw new InvalidArgumentError('subscriber', `${show(subscriber)} is no client of ioredis, iovalkey or node-redis`)
  }
  const prefix = keyPrefixOf(subscriber)
  if (prefix !== undefined && `${prefix}` !== '') {
    throw new InvalidArgumentError(
      'subscriber',
      'its key prefix would stand before the channel too; give a client without',
    )
  }
  if (isIoredis(subscriber)) return (...to) => listenIoredis(subscriber, true, ...to)
  return (...to) => listenOn(subscriber, undefined, ...to)
}

function isListener(subscriber: unknown): subscriber is IoredisClient | NodeRedisClient {
  return typeof subscriber === 'object' && subscriber !== null && (isIoredis(subscriber) || isNodeRedis(subscriber))
}

function unknownClient(problem: string): HeadgateError {
  return new HeadgateError('HEADGATE_CLIENT_UNKNOWN', `client: ${problem}`)
}
