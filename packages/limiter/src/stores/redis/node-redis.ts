import { CONNECT_TIMEOUT_MS, type Connection, type ConnectionEvents, reconnectDelayMs } from './connection.ts'

/** The shape of a node-redis 5 or 6 client that is needed here. */
export interface NodeRedisClient {
  readonly options?: { readonly socket?: object | undefined; readonly keyPrefix?: string | undefined } | undefined
  duplicate(override: object): NodeRedisClient
  sendCommand(args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  destroy(): void
  readonly isReady: boolean
  on(event: string, listener: (...args: never[]) => void): unknown
}

export function isNodeRedis(client: object): client is NodeRedisClient {
  return (
    ['duplicate', 'sendCommand', 'connect', 'destroy'].every(
      (name) => typeof (client as Record<string, unknown>)[name] === 'function',
    ) && 'isReady' in client
  )
}

export function openNodeRedis(client: NodeRedisClient, events: ConnectionEvents): Connection {
  let own = open()
  let closed = false

  function open(): NodeRedisClient {
    const made = client.duplicate({
      // A queue would send commands late, after their callers were answered.
      disableOfflineQueue: true,
      commandOptions: { timeout: undefined },
      maintNotifications: 'disabled',
      socket: {
        ...client.options?.socket,
        connectTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: undefined,
        reconnectStrategy: reconnectDelayMs,
      },
    })
    // A client that was given up still ends in its own time; only the present one has a say.
    made.on('error', (error: Error) => {
      if (made === own) events.onDown(error)
    })
    made.on('ready', () => {
      if (made === own) events.onReady()
    })
    return made
  }

  function connect(): void {
    own.connect().catch((error: Error) => {
      if (!closed) events.onDown(error)
    })
  }

  connect()
  return {
    send: (args) => own.sendCommand(args as string[]),
    reconnect() {
      const former = own
      own = open()
      destroy(former)
      connect()
    },
    async close() {
      closed = true
      destroy(own)
    },
  }
}

function destroy(client: NodeRedisClient): void {
  try {
    client.destroy()
  } catch {
    // It throws when it is not open; closed is what was wanted.
  }
}
