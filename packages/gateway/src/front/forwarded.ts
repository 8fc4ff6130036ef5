import { UNIX } from 'headgate/http'
import type { Connection } from './connection.ts'
import type { RequestHead } from './request-head.ts'

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Adds what the upstream is told about the client: `X-Forwarded-For`, `-Proto`, `-Host` and
 * `Forwarded` (RFC 7239). A trusted peer's lists are kept and grow by one entry; anybody else's are
 * replaced. A peer on a unix socket has no address to add to `X-Forwarded-For`.
 */
export function pushForwarded(fields: string[], head: RequestHead, connection: Connection, authority: string): void {
  const { trusted, peer } = connection
  const element = elementFor(connection, authority)
  const before = trusted ? head.forwardedFor : undefined
  if (peer !== UNIX) fields.push('X-Forwarded-For', before === undefined ? peer : `${before}, ${peer}`)
  else if (before !== undefined) fields.push('X-Forwarded-For', before)
  const proto = (trusted && head.forwardedProto) || 'http'
  const host = (trusted && head.forwardedHost) || authority
  fields.push('X-Forwarded-Proto', proto)
  if (host !== '') fields.push('X-Forwarded-Host', host)
  fields.push('Forwarded', trusted && head.forwarded ? `${head.forwarded}, ${element}` : element)
}

function elementFor(connection: Connection, authority: string): string {
  if (connection.forwarded !== '' && connection.authority === authority) return connection.forwarded
  const element = `${node(connection.peer)}${host(authority)};proto=http`
  if (connection.authority === authority) connection.forwarded = element
  return element
}

function node(peer: string): string {
  if (peer === UNIX) return 'for=_unix'
  return peer.includes(':') ? `for="[${peer}]"` : `for=${peer}`
}

function host(authority: string): string {
  if (authority === '') return ''
  // A host that was let in holds neither quotes nor backslashes.
  return TOKEN.test(authority) ? `;host=${authority}` : `;host="${authority}"`
}
