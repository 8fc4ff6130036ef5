import { CONNECT_TIMEOUT_MS, type Connection, type ConnectionEvents, reconnectDelayMs } from './connection.ts'

/** The shape of an ioredis 5 or 6 client (and of iovalkey's) that is needed here. */
export interface IoredisClient {
  readonly options: { readonly keyPrefix?: string | undefined }
  duplicate(override: object): IoredisClient
  defineCommand(...args: never[]): unknown
  call(command: string, ...args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: string, listener: (...args: never[]) => void): unknown
}

export function isIoredis(client: object): client is IoredisClient {
  return ['duplicate', 'defineCommand', 'call', 'disconnect'].every((name) => has(client, name)) && 'options' in client
}

function has(client: object, name: string): boolean {
  return typeof (client as Record<string, unknown>)[name] === 'function'
}

/** Whether commands go to a cluster; `redisStore` serves single servers. */
export function isIoredisCluster(client: object): boolean {
  return 'isCluster' in client && client.isCluster === true
}

export function openIoredis(client: IoredisClient, events: ConnectionEvents): Connection {
  const own = client.duplicate({
    // Each of these could run a command twice, or late, or leave its caller without an answer.
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    reconnectOnError: null,
    retryStrategy: reconnectDelayMs,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: undefined,
    enableAutoPipelining: false,
    // Keys and replies have to look the same whatever the user's own connection does to them.
    keyPrefix: '',
    stringNumbers: false,
    readOnly: false,
    monitor: false,
    lazyConnect: true,
  })
  let lastError: Error | undefined
  own.on('error', (error: Error) => {
    lastError = error
  })
  own.on('close', () => events.onDown(lastError))
  own.on('ready', () => {
    lastError = undefined
    events.onReady()
  })
  own.connect().catch(() => undefined)
  return {
    send: ([command = '', ...args]) => own.call(command, ...args),
    reconnect: () => own.disconnect(true),
    close: async () => own.disconnect(),
  }
}
