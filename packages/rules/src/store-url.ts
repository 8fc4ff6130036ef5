import { type ClusterUrl, isClusterUrl, readClusterUrl } from './cluster-url.ts'
import type { Objection } from './schema/notes.ts'
import { isSentinelUrl, readSentinelUrl, SENTINEL_HINT, type SentinelSettings, sentinelName } from './sentinel-url.ts'

/** Where counters live. The URL may hold credentials: it is never printed. */
export type StoreSettings =
  | { readonly kind: 'memory' }
  | { readonly kind: 'redis'; readonly url: string }
  | SentinelSettings
  | ({ readonly kind: 'redis-cluster' } & ClusterUrl)

export const STORE_HINT = `memory, redis://host:6379, rediss://host:6379, redis+cluster://host:6379,host:6379 or ${SENTINEL_HINT}`

/** Says what is wrong with a store's URL, without any part of it. */
export function checkStore(text: string): Objection | string | undefined {
  if (text === 'memory') return undefined
  if (isSentinelUrl(text)) {
    const hint = `write ${SENTINEL_HINT}, and escape @ : / # ? % in a password (@ is %40, % is %25)`
    return readSentinelUrl(text) === undefined ? `is no address of Sentinels; ${hint}` : undefined
  }
  if (isClusterUrl(text)) {
    const form = 'redis+cluster://user:password@host:6379,host:6379 and nothing more; escape @ : / # ? % in a password'
    return readClusterUrl(text) === undefined ? `is no list of servers of a cluster; write ${form}` : undefined
  }
  if (!/^rediss?:\/\//i.test(text)) return `is no store that is known; write ${STORE_HINT}`
  if (!URL.canParse(text)) return `is not a URL; write ${STORE_HINT}, and escape @ : / # ? % in a password (@ is %40)`
  const url = new URL(text)
  if (url.hostname === '') return `has no host; write ${STORE_HINT}`
  if (!/^(\/\d{0,5})?$/.test(url.pathname)) return 'has a path that is no database number; write redis://host:6379/0'
  if (url.search !== '' || url.hash !== '')
    return 'has a query or a fragment; write redis://user:password@host:6379/0 and nothing more'
  if (!decodes(url.username) || !decodes(url.password)) return 'has a broken escape in its credentials; write % as %25'
  return undefined
}

export function storeSettings(text: string): StoreSettings {
  if (text === 'memory') return { kind: 'memory' }
  if (isClusterUrl(text)) {
    const cluster = readClusterUrl(text)
    if (cluster !== undefined) return { kind: 'redis-cluster', ...cluster }
  }
  return readSentinelUrl(text) ?? { kind: 'redis', url: text }
}

/** The store without credentials, for people: `redis://127.0.0.1:6379/1`. */
export function storeName(store: StoreSettings): string {
  if (store.kind === 'memory') return 'memory'
  if (store.kind === 'sentinel') return sentinelName(store)
  if (store.kind === 'redis-cluster') return `${store.tls ? 'rediss' : 'redis'}+cluster://${store.hosts.join(',')}`
  const url = new URL(store.url)
  return `${url.protocol}//${url.host}${url.pathname === '/' ? '' : url.pathname}`
}

function decodes(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
