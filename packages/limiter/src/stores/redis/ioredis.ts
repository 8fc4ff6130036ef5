import type { Link, LinkEvents } from './connection.ts'

/** The shape of an ioredis 5 or 6 client (and of iovalkey's) that is needed here. */
export interface IoredisClient {
  readonly options: { readonly keyPrefix?: string | undefined; readonly sentinels?: unknown }
  readonly status: string
  readonly stream?: { cork(): void; uncork(): void } | undefined
  duplicate(override: object): IoredisClient
  defineCommand(...args: never[]): unknown
  call(command: string, ...args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: string, listener: (...args: never[]) => void): unknown
  once(event: string, listener: (...args: never[]) => void): unknown
}

export function isIoredis(client: object): client is IoredisClient {
  return ['duplicate', 'defineCommand', 'call', 'disconnect'].every((name) => has(client, name)) && 'options' in client
}

function has(client: object, name: string): boolean {
  return typeof (client as Record<string, unknown>)[name] === 'function'
}

/** @param address of the server, where it is another than the client's */
export function openIoredis(
  client: IoredisClient,
  events: LinkEvents,
  connectTimeoutMs: number,
  address: object = {},
): Link {
  const own = client.duplicate({
    ...address,
    // A link ends with its connection, and never sends what was not asked for.
    retryStrategy: () => null,
    reconnectOnError: null,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectTimeoutMs,
    disconnectTimeout: 1,
    // Preparing shows whether a server is of use; only behind Sentinels its role has to be read as well.
    enableReadyCheck: Boolean(client.options.sentinels),
    maxLoadingRetryTime: 100,
    commandTimeout: undefined,
    socketTimeout: undefined,
    enableAutoPipelining: false,
    // Keys and replies have to look the same whatever the user's own connection does to them.
    keyPrefix: '',
    stringNumbers: false,
    readOnly: false,
    monitor: false,
    lazyConnect: true,
  })
  // It goes on after an error, such as a SELECT that was refused, and would count in another database.
  own.on('error', (error: Error) => events.onEnd(error))
  own.on('end', () => events.onEnd(undefined))
  own.on('ready', () => events.onReady())
  own.connect().catch(() => undefined)
  return {
    send: ([command = '', ...args]) => own.call(command, ...args),
    together(write) {
      const { stream } = own
      stream?.cork()
      write()
      stream?.uncork()
    },
    end: () =>
      new Promise((resolve) => {
        if (own.status === 'end') resolve()
        else own.once('end', resolve)
        own.disconnect()
      }),
  }
}
