import { isIP } from 'node:net'

/** Where to listen. */
export type ListenAddress =
  /** `::` means all addresses, IPv4 too. */
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

export const LISTEN_HINT = '127.0.0.1:8080, [::1]:8080, :8080 or unix:/run/headgate.sock'

const TCP = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/
const HOST_NAME = /^(?!-)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$/

/** Reads `host:port`, `[v6]:port`, `:port` (all addresses) or `unix:path`; undefined for anything else. */
export function parseListen(text: string): ListenAddress | undefined {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length)
    return path === '' ? undefined : { kind: 'unix', path }
  }
  const parts = TCP.exec(text)
  const port = Number(parts?.[3])
  if (!parts || port > 65_535) return undefined
  const [, v6, plain = ''] = parts
  if (v6 !== undefined) return isIP(v6) === 6 ? { kind: 'tcp', host: v6, port } : undefined
  if (plain === '') return { kind: 'tcp', host: '::', port }
  // Digits and dots that are no address would be looked up as a name.
  const right = isIP(plain) === 4 || (HOST_NAME.test(plain) && !/^[\d.]+$/.test(plain))
  return right ? { kind: 'tcp', host: plain, port } : undefined
}

/** Whether only this machine can connect. */
export function isLoopback(address: ListenAddress): boolean {
  if (address.kind === 'unix') return true
  const { host } = address
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** An address as the rule file writes it. */
export function formatListen(address: ListenAddress): string {
  if (address.kind === 'unix') return `unix:${address.path}`
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`
}
