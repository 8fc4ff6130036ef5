import type { Link, LinkEvents } from './connection.ts'

/** The shape of a Sentinel client of node-redis 6 (`createSentinel`) that is needed here. */
export interface NodeRedisSentinel {
  readonly isReady: boolean
  readonly _keyPrefix?: string | Uint8Array | undefined
  duplicate(override: object): NodeRedisSentinel
  getSentinelNode(): unknown
  sendCommand(isReadonly: boolean | undefined, args: string[], options: object): Promise<unknown>
  connect(): Promise<unknown>
  destroy(): Promise<void>
  on(event: string, listener: (event: SentinelEvent) => void): unknown
}

/** An error, or what happened to a node. */
type SentinelEvent = Error & { readonly type: string; readonly error: Error }

/** Whether it is one of any version; that of node-redis 5 keeps its settings to itself. */
export function isNodeRedisSentinel(client: object): client is NodeRedisSentinel {
  return ['getSentinelNode', 'sendCommand', 'connect', 'destroy'].every((name) => has(client, name))
}

export function canDuplicate(client: NodeRedisSentinel): boolean {
  return has(client, 'duplicate')
}

function has(client: object, name: string): boolean {
  return typeof (client as Record<string, unknown>)[name] === 'function'
}

/** One master's connection, found by Sentinels: it ends when it breaks, or when another master is named. */
export function openNodeRedisSentinel(client: NodeRedisSentinel, events: LinkEvents): Link {
  const own = client.duplicate({
    // A command that failed is never sent again.
    maxCommandRediscovers: 0,
    // Without a client of its own, commands of one turn would go one after the other.
    reserveClient: true,
    masterPoolSize: 1,
    replicaPoolSize: 0,
    scanInterval: 0,
    clientSideCache: undefined,
    passthroughClientErrorEvents: false,
  })
  let ready = false
  let why: Error | undefined
  // Also of a Sentinel that is away while others serve; it says why only where there is no connection at all.
  own.on('error', (error) => {
    why = error
  })
  own.on('client-error', ({ type, error }) => {
    why = error
    if (type === 'MASTER' && ready) events.onEnd(error)
  })
  own.on('topology-change', ({ type }) => {
    if (type === 'MASTER_CHANGE' && ready) events.onEnd(new Error('the Sentinels named another master'))
  })
  own.connect().then(
    () => {
      ready = true
      events.onReady()
    },
    (error: Error) => events.onEnd(why ?? error),
  )
  return {
    // Replies have to look the same whatever the user's own connection does to them.
    send: (args) => own.sendCommand(false, args as string[], { timeout: undefined, typeMapping: {} }),
    end: () => own.destroy(),
  }
}
