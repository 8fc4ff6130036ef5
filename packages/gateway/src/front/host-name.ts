const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+;=%-]+)(?::\d{0,5})?$/i

/**
 * The host of a `Host` field or an authority, as rules see it: lower case, without the port and
 * without the final dot that names the same host. undefined: not a host.
 */
export function hostName(authority: string): string | undefined {
  const host = HOST.exec(authority)?.[1]?.toLowerCase()
  return host?.endsWith('.') && host.length > 1 ? host.slice(0, -1) : host
}
