import { Socket } from 'node:net'
import { GlideClient, type GlideClientConfiguration, GlideClusterClient, Logger } from '@valkey/valkey-glide'
import type { RedisClient, RedisCluster } from 'headgate/redis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5'
import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis-6'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis-5'
import { createClient as createClient6, createCluster as createCluster6 } from 'redis-6'

// It writes every fault to the console.
Logger.setLoggerConfig('off')

/**
 * What the tests need of every client; whatever else it is, `redisStore` takes it. (By their own types: the compiler
 * would need half a minute to find that the clients of node-redis are what they are.)
 */
export interface TestClient {
  readonly name: string
  /** Not connected, and never told to: the store makes a connection of its own from its settings. */
  make(url: string): RedisClient
}

export const CLIENTS: readonly TestClient[] = [
  { name: 'ioredis 5', make: (url) => new Redis5(url, { lazyConnect: true }) },
  { name: 'ioredis 6', make: (url) => new Redis6(url, { lazyConnect: true }) },
  { name: 'node-redis 5', make: (url) => createClient5({ url }) },
  { name: 'node-redis 6', make: (url) => createClient6({ url }) },
]

export const IOVALKEY: TestClient = { name: 'iovalkey', make: (url) => new Iovalkey(url, { lazyConnect: true }) }

/** With GLIDE, which connects again by itself, and ends connections in its own time. */
export const ALL_CLIENTS: readonly TestClient[] = [...CLIENTS, IOVALKEY, { name: 'Valkey GLIDE', make: makeGlide }]

/** GLIDE makes connected clients only, later; this one has its settings, and a socket that goes nowhere. */
function makeGlide(url: string): GlideClient {
  return Reflect.construct(GlideClient, [new Socket(), glideSettings(url)])
}

/** GLIDE takes no URLs. */
export function glideSettings(url: string): GlideClientConfiguration {
  const { hostname, port, username, password, pathname } = new URL(url)
  const databaseId = Number(pathname.slice(1))
  return {
    addresses: [{ host: hostname, port: Number(port) }],
    ...(password !== '' && { credentials: { username: username || 'default', password } }),
    ...(databaseId > 0 && { databaseId }),
  }
}

/** The same of clients of a whole cluster; they are told of some of its servers. */
export const CLUSTER_CLIENTS: readonly {
  readonly name: string
  make(urls: readonly string[]): RedisCluster
}[] = [
  { name: 'ioredis 5', make: (urls) => new Cluster5([...urls], { lazyConnect: true }) },
  {
    name: 'ioredis 6',
    make: (urls) => new Cluster6(urls.map(hostAndPort), { lazyConnect: true, redisOptions: loginOf(urls) }),
  },
  { name: 'node-redis 5', make: (urls) => createCluster5({ rootNodes: urls.map((url) => ({ url })) }) },
  {
    name: 'node-redis 6',
    make: (urls) =>
      createCluster6({ rootNodes: urls.map((url) => ({ socket: hostAndPort(url) })), defaults: loginOf(urls) }),
  },
  { name: 'Valkey GLIDE', make: makeGlideCluster },
]

function makeGlideCluster(urls: readonly string[]): GlideClusterClient {
  const { addresses, ...settings } = glideSettings(urls[0] as string)
  return Reflect.construct(GlideClusterClient, [new Socket(), { ...settings, addresses: urls.map(hostAndPort) }])
}

function hostAndPort(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

/** Of all servers, where their URLs have one. */
function loginOf([url = '']: readonly string[]): { username?: string; password?: string } {
  const { username, password } = new URL(url)
  return password === '' ? {} : { username, password }
}
