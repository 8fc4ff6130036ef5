import type { Subscription, SubscriptionEvents } from '../announcements.ts'
import type { Link, LinkEvents } from '../connection.ts'
import { type IoredisClient, listenIoredis, openIoredis, subscriberOfIoredis } from '../ioredis.ts'
import { type Address, addressOf, type ClusterClient, nameOf, type Seed, seedOf } from './client.ts'

/** The shape of an ioredis 5 or 6 `Cluster` (and of iovalkey's) that is needed here. */
export interface IoredisCluster {
  readonly isCluster: boolean
  readonly options: { readonly keyPrefix?: string | undefined; readonly natMap?: unknown }
  duplicate(nodes: never[], override: object): IoredisCluster
  connect(): Promise<unknown>
  on(event: string, listener: (node: unknown) => void): unknown
}

/** How it may be told of a node to ask first. */
type StartupNode = string | number | { readonly host?: string; readonly port?: number | string }

export function isIoredisCluster(client: object): client is IoredisCluster {
  return 'isCluster' in client && client.isCluster === true && 'startupNodes' in client && 'duplicate' in client
}

export function ioredisCluster(cluster: IoredisCluster): ClusterClient {
  const { startupNodes } = cluster as unknown as { startupNodes: readonly StartupNode[] }
  const { natMap } = cluster.options
  const template = nodeOf(cluster)
  return {
    seeds: startupNodes.flatMap((node) => seedFrom(node) ?? []),
    reach: (address) => mapped(natMap, address) ?? address,
    open: (seed, events, connectTimeoutMs) => new LaterLink(template, seed, events, connectTimeoutMs),
    listen: (...to) => listenLater(template, ...to),
  }
}

/**
 * A client of a single server with the cluster's settings. A cluster hands one out with the first node that it makes,
 * before it connects; what it does afterwards is stopped by an error.
 */
async function nodeOf(cluster: IoredisCluster): Promise<IoredisClient> {
  const own = cluster.duplicate([{ host: '127.0.0.1', port: 1 }] as never[], {
    lazyConnect: true,
    clusterRetryStrategy: null,
    useSRVRecords: false,
    shardedSubscribers: false,
    slotsRefreshInterval: undefined,
  })
  let node: IoredisClient | undefined
  own.on('error', () => undefined)
  own.on('+node', (first) => {
    node = first as IoredisClient
    throw new Error('that is all')
  })
  const error = await own.connect().catch((reason: unknown) => reason)
  if (node === undefined) throw error
  return node
}

/** The link to a node, once it is known how clients are made. */
class LaterLink implements Link {
  private link: Link | undefined
  private ended = false

  constructor(template: Promise<IoredisClient>, { host, port, options }: Seed, events: LinkEvents, timeoutMs: number) {
    template.then(
      (client) => {
        if (!this.ended) this.link = openIoredis(client, events, timeoutMs, { ...options, host, port })
      },
      (error: Error) => events.onEnd(error),
    )
  }

  send(args: readonly string[]): Promise<unknown> {
    return this.link === undefined ? Promise.reject(new Error('the connection is gone')) : this.link.send(args)
  }

  together(write: () => void): void {
    if (this.link?.together === undefined) write()
    else this.link.together(write)
  }

  async end(): Promise<void> {
    this.ended = true
    await this.link?.end()
  }
}

/** The same for a subscription. */
function listenLater(
  template: Promise<IoredisClient>,
  { host, port, options }: Seed,
  channel: string,
  events: SubscriptionEvents,
): Subscription {
  let ended = false
  const listening = template.then(
    (client) => {
      if (ended) return undefined
      return listenIoredis(subscriberOfIoredis(client, { ...options, host, port }), false, channel, events)
    },
    (error: Error) => void events.onLost(error),
  )
  return {
    async end() {
      ended = true
      await (await listening)?.end()
    },
  }
}

function seedFrom(node: StartupNode): Seed | undefined {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node }
  if (typeof node === 'object') {
    const { host = '127.0.0.1', port = 6379, ...options } = node
    return { host, port: Number(port), options }
  }
  if (/^\d+$/.test(node)) return { host: '127.0.0.1', port: Number(node) }
  const parsed = seedOf(node.includes('://') ? node : `redis://${node}`)
  if (parsed === undefined) return undefined
  const { seed, tls, ...login } = parsed
  return { ...seed, options: tls ? { ...login, tls: {} } : login }
}

function mapped(natMap: unknown, address: Address): Address | undefined {
  const name = nameOf(address)
  const to = typeof natMap === 'function' ? natMap(name) : (natMap as Record<string, unknown> | undefined)?.[name]
  if (typeof to === 'string') return addressOf(to)
  return typeof to === 'object' && to !== null ? (to as Address) : undefined
}
