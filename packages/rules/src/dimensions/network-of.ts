import { ipKey } from 'headgate/http'
import ipaddr from 'ipaddr.js'

/** The network of an address, such as `203.0.113.0/24`; a text that is no address stays as it is. */
export function networkOf(ip: string, v4Bits: number, v6Bits: number): string {
  // The key of an address is IPv4 text also where the address is IPv4 inside IPv6.
  const key = ipKey(ip)
  if (ipaddr.IPv4.isValidFourPartDecimal(key)) {
    return `${ipaddr.IPv4.networkAddressFromCIDR(`${key}/${v4Bits}`).toString()}/${v4Bits}`
  }
  const bare = ip.replace(/^\[|\](:\d+)?$|%.*$/g, '')
  if (!ipaddr.IPv6.isValid(bare)) return ip
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${bare}/${v6Bits}`).toRFC5952String()}/${v6Bits}`
}
