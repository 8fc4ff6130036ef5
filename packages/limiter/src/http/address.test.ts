import { isIP, isIPv4 as isIPv4Text, isIPv6 as isIPv6Text } from 'node:net'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import { formatAddress, isIPv4, parseAddress, parseEndpoint } from './address.ts'

const canonical = (text: string) => {
  const address = parseAddress(text)
  return address && formatAddress(address)
}

const addressLike = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.stringMatching(/^[0-9a-f:.]{0,24}$/),
  fc
    .array(fc.constantFrom('::', ':', '0', 'ffff', '1', '1.2.3.4', '.', '01', '256', 'a'), { maxLength: 12 })
    .map((x) => x.join('')),
)

describe('parseAddress', () => {
  it('accepts exactly the texts that node:net takes for addresses', () => {
    fc.assert(
      fc.property(addressLike, (text) => {
        expect(parseAddress(text) !== undefined).toBe(isIP(text) !== 0)
        const address = parseAddress(text)
        if (address && isIPv4Text(text)) expect(isIPv4(address)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  it('reads the same eight groups as ipaddr.js, and writes the same text', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        // ipaddr.js reads `::1.2.3.4` as `::ffff:1.2.3.4`, which is another address.
        fc.pre(!/^::\d+\.\d+\.\d+\.\d+$/.test(text))
        const theirs = ipaddr.IPv6.parse(text)
        expect(parseAddress(text)).toEqual(theirs.parts)
        if (!theirs.isIPv4MappedAddress()) expect(canonical(text)).toBe(theirs.toRFC5952String())
      }),
      { numRuns: 2000 },
    )
  })

  it('gives one text to an address, which reads as the same address', () => {
    const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
      minLength: 8,
      maxLength: 8,
    })
    fc.assert(
      fc.property(groups, (address) => {
        const text = formatAddress(address)
        expect(isIP(text)).not.toBe(0)
        expect(parseAddress(text)).toEqual(address)
        expect(isIPv6Text(text)).toBe(!isIPv4(address))
      }),
    )
  })

  it.each([
    ['0:0:0:0:0:0:0:0', '::'],
    ['::1', '::1'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['::FFFF:1.2.3.4', '1.2.3.4'],
    ['0:0:0:0:0:ffff:0102:0304', '1.2.3.4'],
    ['fe80::1%eth0.100', 'fe80::1'],
    ['::1.2.3.4', '::102:304'],
  ])('reads %s as %s', (text, expected) => expect(canonical(text)).toBe(expected))

  it.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '010.1.1.1',
    '0x7f.1.1.1',
    '2130706433',
    '1.2.3.256',
    '1.2.3.4%eth0',
    '1.2..4',
    ' 1.2.3.4',
  ])('takes %j for no IPv4 address', (text) => expect(parseAddress(text)).toBeUndefined())

  it.each([
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7::8:9',
    '12345::',
    'fe80::1%',
    '::ffff:1.2.3',
    '1.2.3.4::',
    '[::1]',
  ])('takes %j for no IPv6 address', (text) => expect(parseAddress(text)).toBeUndefined())
})

describe('parseEndpoint', () => {
  it.each([
    ['1.2.3.4:5678', '1.2.3.4'],
    ['1.2.3.4:_hidden', '1.2.3.4'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[fe80::1%eth0]:80', 'fe80::1'],
    ['[::ffff:1.2.3.4]:80', '1.2.3.4'],
    ['2001:db8::1', '2001:db8::1'],
  ])('reads %s as %s', (text, expected) => {
    const address = parseEndpoint(text)
    expect(address && formatAddress(address)).toBe(expected)
  })

  it.each([
    '',
    'unknown',
    '_hidden',
    '1.2.3.4:',
    '1.2.3.4:http',
    '1.2.3.4:123456',
    '[1.2.3.4]',
    '[::1',
    '[::1]80',
    '::1]',
    '[]',
    'localhost:80',
  ])('takes %j for no address', (text) => expect(parseEndpoint(text)).toBeUndefined())
})
