import { LISTEN_TIMEOUT_MS, linkOf, linkOptions, listenOn, type NodeRedisClient } from '../node-redis.ts'
import { type ClusterClient, nameOf, type Seed, seedOf } from './client.ts'

/** The shape of a node-redis 5 or 6 `createCluster` that is needed here. */
export interface NodeRedisCluster {
  duplicate(override: object): NodeRedisCluster
  nodeClient(node: never): unknown
  getRandomNode(): unknown
  on(event: string, listener: (error: Error) => void): unknown
}

interface Settings {
  readonly rootNodes: readonly ServerSettings[]
  readonly defaults?: ServerSettings | undefined
}

interface ServerSettings {
  readonly url?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly socket?: object | undefined
}

/** What a cluster makes a client of. */
interface NodeOfCluster {
  readonly address: string
  readonly host: string
  readonly port: number
  readonly readonly: boolean
  client?: NodeRedisClient
}

export function isNodeRedisCluster(client: object): client is NodeRedisCluster {
  return (
    ['duplicate', 'nodeClient', 'getRandomNode'].every(
      (name) => typeof (client as Record<string, unknown>)[name] === 'function',
    ) && Array.isArray(settingsOf(client)?.rootNodes)
  )
}

export function nodeRedisCluster(cluster: NodeRedisCluster): ClusterClient {
  const { rootNodes, defaults } = settingsOf(cluster) as Settings
  return {
    seeds: rootNodes.map(seedFrom),
    // It maps addresses itself when it makes a client.
    reach: (address) => address,
    open: (seed, events, connectTimeoutMs) => {
      const { own, connected, socket } = nodeOf(cluster, defaults, seed, connectTimeoutMs)
      return linkOf(own, connected, socket, events)
    },
    listen: (seed, channel, events) => {
      const { own, ...made } = nodeOf(cluster, defaults, seed, LISTEN_TIMEOUT_MS)
      return listenOn(own, made, channel, events)
    },
  }
}

/** Only here does it keep where to ask first, and how to log in. */
function settingsOf(cluster: object): Settings | undefined {
  return (cluster as { _options?: Settings })._options
}

/** A client of one node, with the cluster's settings, that connects. */
function nodeOf(
  cluster: NodeRedisCluster,
  defaults: ServerSettings | undefined,
  seed: Seed,
  connectTimeoutMs: number,
): { own: NodeRedisClient; connected: Promise<unknown>; socket: AbortController } {
  const socket = new AbortController()
  const settings = { ...defaults, ...(seed.options as ServerSettings | undefined) }
  const own = cluster.duplicate({
    rootNodes: [],
    clientSideCache: undefined,
    keyPrefix: undefined,
    defaults: {
      ...settings,
      ...linkOptions({ ...defaults?.socket, ...settings.socket }, connectTimeoutMs, socket.signal),
    },
  })
  own.on('error', () => undefined)
  own.on('node-error', () => undefined)
  const { host, port } = seed
  const node: NodeOfCluster = { address: nameOf(seed), host, port, readonly: false }
  const connected = own.nodeClient(node as never) as Promise<unknown>
  return { own: node.client as NodeRedisClient, connected, socket }
}

function seedFrom({ url, ...options }: ServerSettings): Seed {
  const { host = '127.0.0.1', port = 6379, ...socket } = (options.socket ?? {}) as { host?: string; port?: number }
  const parsed = url === undefined ? undefined : seedOf(url)
  if (parsed === undefined) return { host, port, options: { ...options, socket } }
  const { seed, tls, ...login } = parsed
  return { ...seed, options: { ...options, ...login, socket: tls ? { ...socket, tls: true } : socket } }
}
