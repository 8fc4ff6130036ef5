import type { RuleFile, SentinelSettings } from '@headgate/rules'
import { memoryStore, type Store } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Cluster, Redis } from 'ioredis'

/**
 * The store that a rule file names: in this process, or Redis. Nobody waits for Redis to be there: the
 * store connects by itself as soon as it can, and until then the rules' `onStoreFailure` decides.
 * Close it when done.
 * @param onNeedlessPassword is called once where the URL has a password and the server asks for none
 */
export function createStore(
  { store, prefix }: Pick<RuleFile, 'store' | 'prefix'>,
  onNeedlessPassword: () => void = () => undefined,
): Store {
  if (store.kind === 'memory') return memoryStore()
  if (store.kind === 'redis-cluster') return redisStore(clusterOf(store), { prefix })
  let told = false
  const tellOnce = () => {
    if (!told) onNeedlessPassword()
    told = true
  }
  // Only a bearer of settings: the store makes connections of its own from it.
  const bearer = store.kind === 'sentinel' ? behindSentinels(store) : new Redis(store.url, { lazyConnect: true })
  const duplicate = bearer.duplicate.bind(bearer)
  bearer.duplicate = (override) => withoutConsole(duplicate(override), tellOnce)
  return redisStore(bearer, { prefix })
}

function behindSentinels(settings: SentinelSettings): Redis {
  const { sentinels, master, database, username, password, tls } = settings
  return new Redis({
    sentinels: [...sentinels],
    name: master,
    db: database,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    lazyConnect: true,
  })
}

type ClusterSettings = Extract<RuleFile['store'], { kind: 'redis-cluster' }>

/** Only a bearer of settings too. */
function clusterOf({ hosts, username, password, tls }: ClusterSettings): Cluster {
  const nodes = hosts.map((host) => {
    const { hostname, port } = new URL(`redis://${host}`)
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
  })
  const login = { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) }
  return new Cluster(nodes, { lazyConnect: true, redisOptions: { ...login, ...(tls ? { tls: {} } : {}) } })
}

type Auth = (credentials: unknown, done: (error: Error | null | undefined) => void) => unknown

/** ioredis writes to the console, at each connection, that a server asks for no password; it goes on all the same. */
function withoutConsole(client: Redis, onNeedlessPassword: () => void): Redis {
  const auth = client.auth.bind(client) as unknown as Auth
  const quiet: Auth = (credentials, done) =>
    auth(credentials, (error) => {
      const needless = /no password is set|without any password configured/.test(error?.message ?? '')
      if (needless) onNeedlessPassword()
      done(needless ? null : error)
    })
  return Object.assign(client, { auth: quiet })
}
