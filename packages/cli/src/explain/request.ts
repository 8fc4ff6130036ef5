import { isIP } from 'node:net'
import { hostName } from '@headgate/gateway'
import { DEFAULT_PATHS, normalizePath, type RuleFile } from '@headgate/rules'
import type { RuleRequest } from 'headgate'
import { clientAddress, trustSettings, UNIX } from 'headgate/http'
import { usageError } from '../exit.ts'
import type { ExplainOptions } from '../options.ts'

/** A request as the gateway would see it, and how it came to that. */
export interface ReadRequest {
  readonly request: RuleRequest
  /** What is worth knowing about how it was read. */
  readonly notes: readonly string[]
}

/** What the gateway would refuse before any rule is asked. */
export interface Unreadable {
  readonly problem: string
}

const DEFAULT_PEER = '127.0.0.1'
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Reads what the command line says of a request, by the file's settings.
 * @throws HeadgateError with HEADGATE_USAGE for what is no request at all
 */
export function readRequest(
  file: RuleFile,
  method: string,
  target: string,
  options: ExplainOptions,
): ReadRequest | Unreadable {
  if (!/^[A-Za-z][A-Za-z-]*$/.test(method)) {
    throw usageError(
      `${JSON.stringify(method)} is not a method; write the method, then the path: headgate explain GET /api`,
    )
  }
  if (!/^(\/|https?:\/\/)/i.test(target))
    throw usageError(`${JSON.stringify(target)} is not a path; write one that begins with /, or a whole URL`)
  const fields = fieldsOf(options.header ?? [])
  const normal = normalizePath(bytes(target), file.gateway?.paths ?? DEFAULT_PATHS)
  if (!normal.ok) return { problem: normal.problem }
  const authority = normal.authority ?? fields.get('host')?.[0]
  const host = authority === undefined ? '' : hostName(authority)
  if (host === undefined) return { problem: 'the Host is not a host with an optional port' }
  const { path, query } = normal
  const { ip, trusted, notes } = callerOf(file, peerOf(options.ip), (name) => fields.get(name))
  const route = file.routeFor(path)?.path
  return {
    request: {
      method: method.toUpperCase(),
      path,
      query,
      host,
      ip,
      trusted,
      route,
      header: (name) => fields.get(name),
    },
    notes: [
      ...(path === bytes(target).split('?')[0] || normal.authority !== undefined
        ? []
        : [`the path is read as ${path}`]),
      ...notes,
    ],
  }
}

function peerOf(ip: string = DEFAULT_PEER): string {
  if (ip === UNIX || isIP(ip) !== 0) return ip
  throw usageError(
    `--ip ${ip} is not an address; write one such as 203.0.113.7 or 2001:db8::1, or unix for a unix socket`,
  )
}

function callerOf(file: RuleFile, peer: string, header: RuleRequest['header']) {
  const { trustedProxies, trustedHops, clientAddress: field } = file.gateway ?? {}
  const trust = trustSettings({ trustedProxies, trustedHops, clientAddress: field })
  const { ip, trusted } = clientAddress(peer === UNIX ? undefined : peer, header, trust)
  const notes: string[] = []
  if (header(trust.field) !== undefined) {
    if (!trusted) notes.push(`${trust.field} is not read: ${peer} is no trusted proxy`)
    else if (ip !== peer) notes.push(`the caller is ${ip}, from ${trust.field}: ${peer} is trusted`)
  }
  return { ip, trusted, notes }
}

/** By lower-case name, the values in their order. */
function fieldsOf(lines: readonly string[]): Map<string, string[]> {
  const fields = new Map<string, string[]>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).toLowerCase()
    if (!TOKEN.test(name)) throw usageError(`-H ${JSON.stringify(line)} is not a field; write -H 'name: value'`)
    fields.set(name, [...(fields.get(name) ?? []), bytes(line.slice(colon + 1).trim())])
  }
  return fields
}

/** A text as a request carries it: one character for each byte of its UTF-8. */
function bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
