/** An IP address: eight groups of 16 bits; IPv4 stands as `::ffff:a.b.c.d`, so each address has one form. */
export type Address = readonly number[]

const MAX_TEXT = 100
const PORT = /^:(?:\d{1,5}|_[\w.-]+)$/
const GROUP = /^[0-9a-f]{1,4}$/i

/**
 * Reads an IPv4 address in four decimal parts, or an IPv6 address in any spelling, with a zone
 * (`%eth0`) that is dropped. Octal, hexadecimal and short forms of IPv4 are no addresses here: one
 * reader's `010.1` is another's 10.0.0.1.
 */
export function parseAddress(text: string): Address | undefined {
  if (text.length > MAX_TEXT) return undefined
  if (!text.includes(':')) {
    const low = ipv4Groups(text)
    return low && [0, 0, 0, 0, 0, 0xffff, ...low]
  }
  const zone = text.indexOf('%')
  if (zone === text.length - 1) return undefined
  return ipv6Groups(zone < 0 ? text : text.slice(0, zone))
}

/** Reads an address as proxies write it: bare, in brackets, with a port. A port may be obfuscated (`_x`). */
export function parseEndpoint(text: string): Address | undefined {
  if (text.startsWith('[')) {
    const end = text.indexOf(']')
    const port = text.slice(end + 1)
    const inner = text.slice(1, end)
    return end > 0 && inner.includes(':') && (port === '' || PORT.test(port)) ? parseAddress(inner) : undefined
  }
  const colon = text.indexOf(':')
  // No IPv6 address has only one colon.
  if (colon < 0 || colon !== text.lastIndexOf(':')) return parseAddress(text)
  return PORT.test(text.slice(colon)) ? parseAddress(text.slice(0, colon)) : undefined
}

export function isIPv4(address: Address): boolean {
  return address[5] === 0xffff && zero(address, 0, 5)
}

/** The canonical text: dotted decimal, or RFC 5952 (lower case, the longest run of zeros as `::`). */
export function formatAddress(address: Address): string {
  if (isIPv4(address)) return formatIPv4(address)
  const [start, end] = longestZeros(address)
  const hex = (from: number, to: number) =>
    address
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(':')
  return end - start < 2 ? hex(0, 8) : `${hex(0, start)}::${hex(end, 8)}`
}

/** The last two groups as an IPv4 address. */
export function formatIPv4(address: Address): string {
  const [high = 0, low = 0] = address.slice(6)
  return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`
}

/** Whether the groups from `from` up to `to` are zero. */
export function zero(address: Address, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (address[i] !== 0) return false
  return true
}

function ipv4Groups(text: string): [number, number] | undefined {
  let value = 0
  let octet = -1
  let octets = 0
  for (let i = 0; i <= text.length; i++) {
    const char = i < text.length ? text.charCodeAt(i) : 46
    if (char === 46) {
      if (octet < 0 || ++octets > 4) return undefined
      value = value * 256 + octet
      octet = -1
    } else {
      if (char < 48 || char > 57 || octet === 0) return undefined
      octet = (octet < 0 ? 0 : octet * 10) + char - 48
      if (octet > 255) return undefined
    }
  }
  return octets === 4 ? [Math.floor(value / 65_536), value % 65_536] : undefined
}

function ipv6Groups(text: string): Address | undefined {
  const gap = text.indexOf('::')
  if (gap < 0) {
    const groups = groupsOf(text, true)
    return groups?.length === 8 ? groups : undefined
  }
  const head = groupsOf(text.slice(0, gap), false)
  const tail = groupsOf(text.slice(gap + 2), true)
  if (!head || !tail || head.length + tail.length > 7) return undefined
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}

function groupsOf(text: string, mayEndInIPv4: boolean): number[] | undefined {
  const groups: number[] = []
  if (text === '') return groups
  const parts = text.split(':')
  for (const [i, part] of parts.entries()) {
    if (GROUP.test(part)) {
      groups.push(Number.parseInt(part, 16))
      continue
    }
    const low = mayEndInIPv4 && i === parts.length - 1 ? ipv4Groups(part) : undefined
    if (!low) return undefined
    groups.push(...low)
  }
  return groups
}

function longestZeros(address: Address): [number, number] {
  let best: [number, number] = [0, 0]
  for (let start = 0; start < 8; start++) {
    let end = start
    while (end < 8 && address[end] === 0) end++
    if (end - start > best[1] - best[0]) best = [start, end]
  }
  return best
}
