import { InvalidArgumentError, show } from '../errors.ts'
import { type Address, isIPv4, parseAddress } from './address.ts'

/** Whether an address lies in any of some networks. */
export type AddressMatcher = (address: Address) => boolean

interface Network {
  readonly base: Address
  readonly bits: number
  readonly ipv4: boolean
}

/**
 * Compiles networks such as `10.0.0.0/8`, `2001:db8::/32` or `::ffff:10.0.0.0/104`; an address
 * without a length is a network of one. IPv4 networks hold IPv4 addresses in all spellings, and IPv6
 * networks hold none of them, so `::/0` is not everybody.
 * @throws InvalidArgumentError naming the entry, as `argument[2]`
 */
export function addressMatcher(cidrs: readonly string[], argument: string): AddressMatcher {
  const networks = cidrs.map((cidr, i) => parseCidr(cidr, `${argument}[${i}]`))
  return (address) => {
    const ipv4 = isIPv4(address)
    return networks.some((network) => network.ipv4 === ipv4 && contains(network, address))
  }
}

/** The same for callers that hold an address as text; a text that is no address lies in no network. */
export function ipMatcher(cidrs: readonly string[], argument: string): (ip: string) => boolean {
  const matches = addressMatcher(cidrs, argument)
  return (ip) => {
    const address = parseAddress(ip)
    return address !== undefined && matches(address)
  }
}

function parseCidr(cidr: unknown, argument: string): Network {
  const text = typeof cidr === 'string' ? cidr : ''
  const slash = text.indexOf('/')
  const host = slash < 0 ? text : text.slice(0, slash)
  const base = host.includes('%') ? undefined : parseAddress(host)
  const length = slash < 0 ? undefined : prefixLength(text.slice(slash + 1))
  const dotted = !host.includes(':')
  if (!base || (slash >= 0 && (length === undefined || length > (dotted ? 32 : 128)))) {
    throw new InvalidArgumentError(
      argument,
      `${show(cidr)} is not a network; write one such as "10.0.0.0/8" or "2001:db8::/32"`,
    )
  }
  const bits = length === undefined ? 128 : length + (dotted ? 96 : 0)
  return { base, bits, ipv4: bits >= 96 && isIPv4(base) }
}

function prefixLength(text: string): number | undefined {
  return /^(0|[1-9]\d{0,2})$/.test(text) ? Number(text) : undefined
}

function contains({ base, bits }: Network, address: Address): boolean {
  for (let i = 0, left = bits; left > 0; i++, left -= 16) {
    const shift = left >= 16 ? 0 : 16 - left
    if ((base[i] as number) >> shift !== (address[i] as number) >> shift) return false
  }
  return true
}
