import { HeadgateError, InvalidArgumentError, show } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import type { RemoteStore } from '../../store.ts'
import type { Subscribe } from './announcements.ts'
import type { OpenLink } from './connection.ts'
import {
  type IoredisClient,
  isIoredis,
  isIoredisCluster,
  listenIoredis,
  openIoredis,
  subscriberOfIoredis,
} from './ioredis.ts'
import {
  isNodeRedis,
  listenNodeRedis,
  type NodeRedisClient,
  openNodeRedis,
  subscriberOfNodeRedis,
} from './node-redis.ts'
import { DECIDE, RedisStore, type Script } from './store.ts'

export type RedisClient = IoredisClient | NodeRedisClient

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
 * @param client an ioredis 5 or 6, or node-redis 5 or 6 client of a single server, connected or not
 * @throws HEADGATE_CLIENT_UNKNOWN for any other client
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RemoteStore {
  return redisStoreOn(client, options, DECIDE)
}

/** The same with another build of the script. */
export function redisStoreOn(client: RedisClient, options: RedisStoreOptions, script: Script): RemoteStore {
  refuseUnknown(options, ['prefix', 'subscriber'], 'redisStore')
  const { prefix = 'rate_limit', subscriber } = options
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new InvalidArgumentError(
      'prefix',
      `${show(prefix)} is not a letter or digit, then up to 63 of A-Z a-z 0-9 . _ : -`,
    )
  }
  const open = opener(client)
  const ownPrefix = client.options?.keyPrefix
  if (ownPrefix !== undefined && ownPrefix.length > 0) {
    process.emitWarning(
      `the client's key prefix ${show(`${ownPrefix}`)} is not used for counters, so that every tool sees the same keys; set prefix: instead`,
      { type: 'HeadgateWarning', code: 'HEADGATE_KEY_PREFIX' },
    )
  }
  return new RedisStore(open, prefix, script, subscribing(client, subscriber))
}

function opener(client: RedisClient): OpenLink {
  if (typeof client === 'object' && client !== null) {
    if (isIoredisCluster(client))
      throw unknownClient('an ioredis Cluster is not supported yet; give a client of a single server')
    if (isIoredis(client)) return (events, timeoutMs) => openIoredis(client, events, timeoutMs)
    if (isNodeRedis(client)) return (events, timeoutMs) => openNodeRedis(client, events, timeoutMs)
  }
  throw unknownClient(`${show(client)} is of no known shape; give a client of ioredis 5 or 6, or of node-redis 5 or 6`)
}

/** How changes are listened to: by the client that is given for it, else by one made like the other. */
function subscribing(client: RedisClient, subscriber: RedisClient | undefined): Subscribe {
  const given = subscriber !== undefined
  if (given) opener(subscriber)
  const { keyPrefix } = subscriber?.options ?? {}
  if (keyPrefix !== undefined && keyPrefix.length > 0) {
    throw new InvalidArgumentError(
      'subscriber',
      'its key prefix would stand before the channel too; give a client without one',
    )
  }
  return (channel, events) => {
    const of = subscriber ?? client
    return isIoredis(of)
      ? listenIoredis(given ? of : subscriberOfIoredis(of), given, channel, events)
      : listenNodeRedis(given ? of : subscriberOfNodeRedis(of), given, channel, events)
  }
}

function unknownClient(problem: string): HeadgateError {
  return new HeadgateError('HEADGATE_CLIENT_UNKNOWN', `client: ${problem}`)
}
