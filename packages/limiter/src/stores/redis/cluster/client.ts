import type { Subscription, SubscriptionEvents } from '../announcements.ts'
import type { Link, LinkEvents } from '../connection.ts'

/** Where a server listens. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** A server to ask first, with what has to be said to it alone. */
export interface Seed extends Address {
  readonly options?: object | undefined
}

/** A client of a whole cluster: what is needed of it to make connections of our own to its nodes. */
export interface ClusterClient {
  readonly seeds: readonly Seed[]
  /** Where a node is reached that calls itself so. */
  reach(address: Address): Address
  open(seed: Seed, events: LinkEvents, connectTimeoutMs: number): Link
  /** Listens to a node; what is published anywhere in the cluster is heard there. Absent: it cannot. */
  listen?(seed: Seed, channel: string, events: SubscriptionEvents): Subscription
}

export function nameOf({ host, port }: Address): string {
  return `${host}:${port}`
}

/** @returns undefined where it is no `host:port`, or has no port that can be */
export function addressOf(text: string): Address | undefined {
  const [, host = '', digits = ''] = /^(.*):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  return host === '' || port < 1 || port > 65_535 ? undefined : { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

/** A URL of a server, with the login and the TLS that it asks for. */
export function seedOf(url: string): { seed: Address; username?: string; password?: string; tls: boolean } | undefined {
  if (!URL.canParse(url)) return undefined
  const { hostname, port, username, password, protocol } = new URL(url)
  const seed = addressOf(`${hostname}:${port === '' ? 6379 : port}`)
  if (seed === undefined) return undefined
  return {
    seed,
    tls: protocol === 'rediss:' || protocol === 'valkeys:',
    ...(username === '' ? undefined : { username: decodeURIComponent(username) }),
    ...(password === '' ? undefined : { password: decodeURIComponent(password) }),
  }
}
