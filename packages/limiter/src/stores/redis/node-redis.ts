import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Link, LinkEvents } from './connection.ts'

/** The shape of a node-redis 5 or 6 client that is needed here. */
export interface NodeRedisClient {
  readonly options?:
    | { readonly socket?: object | undefined; readonly keyPrefix?: string | Uint8Array | undefined }
    | undefined
  duplicate(override: object): NodeRedisClient
  sendCommand(args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  destroy(): void
  readonly isReady: boolean
  on(event: string, listener: (error: Error) => void): unknown
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
  const own = client.duplicate(linkOptions(client.options?.socket, connectTimeoutMs, socket.signal))
  const connected = own.connect()
  return linkOf(own, connected, socket, events)
}

/** What a client needs so that its one connection is a link. */
export function linkOptions(socket: object | undefined, connectTimeoutMs: number, signal: AbortSignal): object {
  return {
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
