import type { Subscription, SubscriptionEvents } from './announcements.ts'
import type { Link, LinkEvents } from './connection.ts'

/** The shape of an ioredis 5 or 6 client, and of iovalkey's, that is needed here. */
export interface IoredisClient {
  readonly options: {
    readonly keyPrefix?: string | undefined
    readonly sentinels?: readonly object[] | null | undefined
  }
  readonly status: string
  readonly stream?: { cork(): void; uncork(): void } | undefined
  duplicate(override: object): IoredisClient
  defineCommand(...args: never[]): unknown
  call(command: string, ...args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: string, listener: (...args: never[]) => void): unknown
  once(event: string, listener: (...args: never[]) => void): unknown
  off(event: string, listener: () => void): unknown
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
  const { sentinels } = client.options
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
    enableReadyCheck: Boolean(sentinels),
    // Each link begins with another Sentinel: one that swallows everything would use up the time of all.
    ...(sentinels && { sentinels: turned(sentinels), sentinelRetryStrategy: () => null }),
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
    end: () => ended(own),
  }
}

function ended(own: IoredisClient): Promise<void> {
  return new Promise((resolve) => {
    if (own.status === 'end') resolve()
    else own.once('end', resolve)
    own.disconnect()
  })
}

/** @param given the client is its user's, who connects and ends it */
export function listenIoredis(
  own: IoredisClient,
  given: boolean,
  channel: string,
  events: SubscriptionEvents,
): Subscription {
  let why: Error | undefined
  const message = (from: string, text: string) => {
    if (from === channel) events.onMessage(text)
  }
  const ready = () => void own.subscribe(channel).then(events.onLive, events.onLost)
  const error = (cause: Error) => {
    why = cause
  }
  const close = () => events.onLost(why)
  const listeners = { message, ready, error, close }
  for (const [event, listener] of Object.entries(listeners)) own.on(event, listener)
  if (own.status === 'ready') ready()
  else if (!given) own.connect().catch(() => undefined)
  return {
    async end() {
      for (const [event, listener] of Object.entries(listeners)) own.off(event, listener as () => void)
      if (!given) {
        own.on('error', () => undefined)
        await ended(own)
      } else if (own.status === 'ready') await own.unsubscribe(channel).catch(() => undefined)
    },
  }
}

/** @param address of the server, where it is another than the client's */
export function subscriberOfIoredis(client: IoredisClient, address: object = {}): IoredisClient {
  return client.duplicate({
    ...address,
    retryStrategy: () => null,
    reconnectOnError: null,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    commandTimeout: undefined,
    disconnectTimeout: 1,
    keyPrefix: '',
    readOnly: false,
    monitor: false,
    lazyConnect: true,
  })
}

/** The same list from a random place on. */
function turned<T>(list: readonly T[]): T[] {
  const from = Math.floor(Math.random() * list.length)
  return [...list.slice(from), ...list.slice(0, from)]
}
