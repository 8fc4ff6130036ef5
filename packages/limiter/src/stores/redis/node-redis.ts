import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Subscription, SubscriptionEvents } from './announcements.ts'
import type { Link, LinkEvents } from './connection.ts'

/** The shape of a node-redis 5 or 6 client that is needed here. */
export interface NodeRedisClient {
  readonly options?:
    | { readonly socket?: object | undefined; readonly keyPrefix?: string | Uint8Array | undefined }
    | undefined
  duplicate(override: object): NodeRedisClient
  sendCommand(args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  unsubscribe(channel: string, listener?: (message: string) => void): Promise<unknown>
  destroy(): void
  readonly isReady: boolean
  on(event: string, listener: (error: Error) => void): unknown
  off(event: string, listener: () => void): unknown
}

export function isNodeRedis(client: object): client is NodeRedisClient {
  return (
    ['duplicate', 'sendCommand', 'connect', 'destroy'].every(
      (name) => typeof (client as Record<string, unknown>)[name] === 'function',
    ) && 'isReady' in client
  )
}

export function openNodeRedis(client: NodeRedisClient, events: LinkEvents, connectTimeoutMs: number): Link {
  const socket = new AbortController()
  const own = client.duplicate({
    // A queue would send commands late, after their callers were answered.
    disableOfflineQueue: true,
    commandsQueueMaxLength: undefined,
    pingInterval: undefined,
    // Replies have to look the same whatever the user's own connection does to them.
    commandOptions: { timeout: undefined },
    clientSideCache: undefined,
    emitInvalidate: false,
    readonly: false,
    maintNotifications: 'disabled',
    socket: {
      ...client.options?.socket,
      connectTimeout: connectTimeoutMs,
      socketTimeout: undefined,
      // A client that gave up by itself could no longer be destroyed; every error destroys it first.
      reconnectStrategy: () => 1,
      // The only way to reach a socket that is not connected yet.
      signal: socket.signal,
    },
  })
  own.on('error', (error: Error) => events.onEnd(error))
  own.on('ready', () => events.onReady())
  own.connect().catch((error: Error) => events.onEnd(error))
  return {
    send: (args) => own.sendCommand(args as string[]),
    async end() {
      try {
        own.destroy()
      } catch {
        // It throws when it is not open; closed is what was wanted.
      }
      socket.abort()
      await nextTurn()
    },
  }
}

/** @param given the client is its user's, who connects and ends it */
export function listenNodeRedis(
  own: NodeRedisClient,
  given: boolean,
  channel: string,
  events: SubscriptionEvents,
): Subscription {
  const message = (text: string) => events.onMessage(text)
  const error = (cause: Error) => events.onLost(cause)
  // It subscribes anew by itself when it has connected anew; asked for again, it says when it has.
  const ready = () => void own.subscribe(channel, message).then(events.onLive, events.onLost)
  own.on('error', error)
  own.on('ready', ready)
  if (own.isReady) ready()
  else if (!given) own.connect().catch(events.onLost)
  return {
    async end() {
      own.off('ready', ready)
      own.off('error', error as () => void)
      if (given) {
        if (own.isReady) await own.unsubscribe(channel, message).catch(() => undefined)
        return
      }
      own.on('error', () => undefined)
      try {
        own.destroy()
      } catch {
        // It throws when it is not open; closed is what was wanted.
      }
      await nextTurn()
    },
  }
}

export function subscriberOfNodeRedis(client: NodeRedisClient): NodeRedisClient {
  return client.duplicate({
    disableOfflineQueue: true,
    pingInterval: undefined,
    commandOptions: { timeout: undefined },
    clientSideCache: undefined,
    emitInvalidate: false,
    readonly: false,
    maintNotifications: 'disabled',
    socket: {
      ...client.options?.socket,
      socketTimeout: undefined,
      reconnectStrategy: (attempts: number) => Math.min(2000, 50 * 2 ** attempts),
    },
  })
}
