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

const PLAIN = {
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
}

export function openNodeRedis(client: NodeRedisClient, events: LinkEvents, connectTimeoutMs: number): Link {
  const socket = new AbortController()
  const own = client.duplicate(linkOptions(client.options?.socket, connectTimeoutMs, socket.signal))
  const connected = own.connect()
  return linkOf(own, connected, socket, events)
}

/** What a client needs so that its one connection is a link. */
export function linkOptions(socket: object | undefined, connectTimeoutMs: number, signal: AbortSignal): object {
  return {
    ...PLAIN,
    socket: {
      ...socket,
      connectTimeout: connectTimeoutMs,
      socketTimeout: undefined,
      // A client that gave up by itself could no longer be destroyed; every error destroys it first.
      reconnectStrategy: () => 1,
      // The only way to reach a socket that is not connected yet.
      signal,
    },
  }
}

/** The link of a client that has just been told to connect. */
export function linkOf(
  own: NodeRedisClient,
  connected: Promise<unknown>,
  socket: AbortController,
  events: LinkEvents,
): Link {
  own.on('error', (error: Error) => events.onEnd(error))
  own.on('ready', () => events.onReady())
  connected.catch((error: Error) => events.onEnd(error))
  return {
    send: (args) => own.sendCommand(args as string[]),
    end: () => destroy(own, socket),
  }
}

/** Listens on a connection made like the client's. */
export function listenNodeRedis(client: NodeRedisClient, channel: string, events: SubscriptionEvents): Subscription {
  const socket = new AbortController()
  const own = client.duplicate(linkOptions(client.options?.socket, LISTEN_TIMEOUT_MS, socket.signal))
  return listenOn(own, { connected: own.connect(), socket }, channel, events)
}

/** How long a connection to listen on may take to be made, in ms. */
export const LISTEN_TIMEOUT_MS = 1000

/** @param made how the client is ended that was made for this alone; absent: its user connects and ends it */
export function listenOn(
  own: NodeRedisClient,
  made: { connected: Promise<unknown>; socket: AbortController } | undefined,
  channel: string,
  events: SubscriptionEvents,
): Subscription {
  const message = (text: string) => events.onMessage(text)
  const error = (cause: Error) => events.onLost(cause)
  // A client that came back has subscribed by itself; asked for again, it says when it has.
  const ready = () => void own.subscribe(channel, message).then(events.onLive, events.onLost)
  own.on('error', error)
  own.on('ready', ready)
  if (made !== undefined) made.connected.catch(events.onLost)
  else if (own.isReady) ready()
  return {
    async end() {
      own.off('ready', ready)
      own.off('error', error as () => void)
      if (made !== undefined) {
        own.on('error', () => undefined)
        await destroy(own, made.socket)
      } else if (own.isReady) await own.unsubscribe(channel, message).catch(() => undefined)
    },
  }
}

async function destroy(own: NodeRedisClient, socket: AbortController): Promise<void> {
  try {
    own.destroy()
  } catch {
    // It throws when it is not open; closed is what was wanted.
  }
  socket.abort()
  await nextTurn()
}
