import { InvalidArgumentError, show } from '../errors.ts'
import { refuseUnknown } from '../options.ts'
import { type Address, formatAddress, parseAddress, parseEndpoint } from './address.ts'
import { type AddressMatcher, addressMatcher } from './cidr.ts'
import { commaBefore, forParameter, unquoted } from './forwarded.ts'
import { UNIX } from './ip-key.ts'

/** Whose word about a caller's address is believed. At most one of the first two is given. */
export interface TrustOptions {
  /** Networks of proxies, such as `10.0.0.0/8`; default none, so nobody is believed. */
  readonly trustedProxies?: readonly string[] | undefined
  /** How many proxies stand in front, whatever their addresses; the peer is the first of them. Default 0. */
  readonly trustedHops?: number | undefined
  /** The one field that is read: `x-forwarded-for` (default), `forwarded` (RFC 7239) or any other name. */
  readonly clientAddress?: string | undefined
}

/** {@link TrustOptions}, compiled by {@link trustSettings}. */
export interface TrustSettings {
  /** Lower case. */
  readonly field: string
  readonly hops: number
  /** Whether an address is a trusted proxy's; unused where `hops` counts. */
  readonly trusts: AddressMatcher
  /** What is known of peers; bounded. */
  readonly peers: Map<string, ClientAddress>
}

export interface ClientAddress {
  /** The caller: a canonical IPv4 or IPv6 address (without port, zone or brackets), or `unix`. */
  readonly ip: string
  /** Whether the peer, who sent the request here, is trusted to set fields. */
  readonly trusted: boolean
}

const MAX_PEERS = 4096
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const UNIX_PEER: ClientAddress = { ip: UNIX, trusted: true }

/**
 * Compiles who is trusted; once, not for each request.
 * @throws InvalidArgumentError naming the setting, of a list the entry (`trustedProxies[2]`)
 */
export function trustSettings(options: TrustOptions = {}): TrustSettings {
  refuseUnknown(options, ['trustedProxies', 'trustedHops', 'clientAddress'], 'trustSettings')
  const { trustedProxies = [], trustedHops = 0, clientAddress: name = 'x-forwarded-for' } = options
  const field = String(name).toLowerCase()
  if (!FIELD_NAME.test(field)) {
    throw new InvalidArgumentError('clientAddress', `${show(name)} is not a field's name; write x-forwarded-for`)
  }
  if (!Number.isSafeInteger(trustedHops) || trustedHops < 0) {
    throw new InvalidArgumentError('trustedHops', `${show(trustedHops)} is not a number of proxies; write 1`)
  }
  if (trustedHops > 0 && trustedProxies.length > 0) {
    throw new InvalidArgumentError('trustedHops', 'stands beside trustedProxies; keep one of the two')
  }
  return { field, hops: trustedHops, trusts: addressMatcher(trustedProxies, 'trustedProxies'), peers: new Map() }
}

/**
 * Who sent a request.
 *
 * The peer, unless it is trusted; then the configured field is read from the right, where the nearest
 * proxy wrote, to the left, where anybody could. With `trustedProxies` the first address that is not
 * trusted is the caller (the last one read, where all are). With `trustedHops: n` it is the nth entry
 * from the right; a list that is shorter did not come through these proxies, and the peer counts. An
 * entry that is no address (`unknown`, `_hidden`, garbage) ends the walk at the last trusted address.
 * Several lines of the field are one list.
 *
 * A peer on a unix socket has no address: it is trusted, since the file's permissions say who may
 * connect, and it counts as `unix` where the field is absent, empty or unreadable. Where the field is
 * there, it is read as from any trusted proxy; so a proxy in front of a unix socket must set the
 * field itself, and must not hand on a caller's.
 *
 * @param peer the socket's remote address as text; undefined or empty for a unix socket. Node forgets
 *   the address of a TCP socket that is gone: take it when the connection opens, or a caller that hangs
 *   up early passes as a unix socket
 * @param header the values of a field by its lower-case name, one for each line
 */
export function clientAddress(
  peer: string | undefined,
  header: (name: string) => readonly string[] | undefined,
  trust: TrustSettings,
): ClientAddress {
  const sender = peer === undefined || peer === '' ? UNIX_PEER : peerOf(peer, trust)
  if (!sender.trusted) return sender
  const lines = header(trust.field)
  if (lines === undefined || lines.length === 0) return sender
  const list = lines.length === 1 ? (lines[0] as string) : lines.join(',')
  const found = trust.hops > 0 ? nthAddress(list, trust) : firstUntrusted(list, trust)
  return found ? { ip: formatAddress(found), trusted: true } : sender
}

function peerOf(text: string, trust: TrustSettings): ClientAddress {
  const known = trust.peers.get(text)
  if (known) return known
  const address = parseAddress(text)
  const trusted = address !== undefined && (trust.hops > 0 || trust.trusts(address))
  const peer = { ip: address ? formatAddress(address) : text, trusted }
  if (trust.peers.size >= MAX_PEERS) trust.peers.clear()
  trust.peers.set(text, peer)
  return peer
}

/** undefined: not even the nearest entry is an address. */
function firstUntrusted(list: string, trust: TrustSettings): Address | undefined {
  let last: Address | undefined
  for (let end = list.length; end >= 0; ) {
    const comma = separator(list, end, trust)
    const entry = list.slice(comma + 1, end).trim()
    end = comma
    // An empty element of a list is no element (RFC 9110, 5.6.1).
    if (entry === '') continue
    const address = addressIn(entry, trust)
    if (!address) return last
    if (!trust.trusts(address)) return address
    last = address
  }
  return last
}

/** undefined: the list is too short, or the nearest entry is no address. */
function nthAddress(list: string, trust: TrustSettings): Address | undefined {
  let left = trust.hops
  let last: Address | undefined
  let readable = true
  for (let end = list.length; end >= 0; ) {
    const comma = separator(list, end, trust)
    const entry = list.slice(comma + 1, end).trim()
    end = comma
    if (entry === '') continue
    const address: Address | undefined = readable ? addressIn(entry, trust) : undefined
    readable = address !== undefined
    last = address ?? last
    if (--left === 0) return last
  }
  return undefined
}

function separator(list: string, end: number, trust: TrustSettings): number {
  if (trust.field === 'forwarded') return commaBefore(list, end)
  return end === 0 ? -1 : list.lastIndexOf(',', end - 1)
}

function addressIn(entry: string, trust: TrustSettings): Address | undefined {
  const text = trust.field === 'forwarded' ? forParameter(entry) : unquoted(entry)
  return text === undefined ? undefined : parseEndpoint(text)
}
