import { type Address, formatAddress, formatIPv4, isIPv4, parseEndpoint, zero } from './address.ts'

/** What a caller on a unix socket counts as: it has no address. */
export const UNIX = 'unix'

const CACHE_ENTRIES = 4096
const cache = new Map<string, string>()

/**
 * What a caller is counted by: an IPv4 address as it is, an IPv6 address by its /64 (`2001:db8:1:2::`),
 * since one host may use every address of its /64.
 *
 * All spellings of one address give one key: case, zeros, brackets, port and zone make no
 * difference. An IPv6 address that stands for an IPv4 host counts as that host, or else all hosts
 * behind a translator would share one key: IPv4-mapped (`::ffff:0:0/96`), IPv4-translated
 * (`::ffff:0:0:0/96`) and the well-known NAT64 prefix (`64:ff9b::/96`). Everything else goes by its
 * /64, also 6to4 (a site has a /48 there, as anywhere), the local NAT64 prefix (`64:ff9b:1::/48`,
 * where the network's owner decides which bits hold the IPv4 address), and an address that merely
 * ends in a dotted quad. `unix`, and any text that is no address, stays as it is.
 */
export function ipKey(ip: string): string {
  if (ip === UNIX) return ip
  const known = cache.get(ip)
  if (known !== undefined) return known
  const address = parseEndpoint(ip)
  const key = address ? keyOf(address) : ip
  if (cache.size >= CACHE_ENTRIES) cache.clear()
  cache.set(ip, key)
  return key
}

function keyOf(address: Address): string {
  if (isIPv4(address) || translated(address)) return formatIPv4(address)
  return formatAddress([...address.slice(0, 4), 0, 0, 0, 0])
}

function translated(address: Address): boolean {
  if (address[0] === 0x64) return address[1] === 0xff9b && zero(address, 2, 6)
  return address[4] === 0xffff && address[5] === 0 && zero(address, 0, 4)
}
