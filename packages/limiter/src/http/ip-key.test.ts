import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ipKey } from './ip-key.ts'

describe('ipKey', () => {
  it('counts a host with a whole /64 as one caller (express-rate-limit#502)', () => {
    const keys = new Set(Array.from({ length: 6 }, (_, i) => ipKey(`2001:db8:1:2:${i}:aa${i}::${i}`)))
    expect([...keys]).toEqual(['2001:db8:1:2::'])
    expect(ipKey('2001:db8:1:3::1')).toBe('2001:db8:1:3::')
  })

  it('gives all spellings of an IPv6 address one key (express-rate-limit#502)', () => {
    const spellings = [
      '2001:DB8:1:2:0:0:0:1',
      '2001:db8:1:2::1',
      '2001:0db8:0001:0002::0001',
      '2001:db8:1:2::1%eth0',
      '[2001:db8:1:2::1]',
      '[2001:db8:1:2::1%eth0]:4711',
      '2001:db8:1:2::0.0.0.1',
    ]
    expect(new Set(spellings.map(ipKey))).toEqual(new Set(['2001:db8:1:2::']))
  })

  it('counts an IPv4 address inside an IPv6 address as that host, and no other (express-rate-limit#667)', () => {
    const spellings = [
      '1.2.3.4',
      '::ffff:1.2.3.4',
      '::ffff:102:304',
      '::FFFF:0102:0304',
      '0:0:0:0:0:ffff:1.2.3.4',
      '[::ffff:1.2.3.4]:80',
    ]
    expect(new Set(spellings.map(ipKey))).toEqual(new Set(['1.2.3.4']))
    expect(ipKey('::ffff:1.2.3.5')).toBe('1.2.3.5')
  })

  it('keys an IPv6 address that merely ends in a dotted quad by its prefix (express-rate-limit#667)', () => {
    expect(ipKey('2001:db8:1234:5678::1.2.3.4')).toBe('2001:db8:1234:5678::')
    expect(ipKey('2001:db8:1234:5678::ffff:1.2.3.4')).toBe('2001:db8:1234:5678::')
  })

  it('tells hosts behind the well-known NAT64 prefix apart (Flowfin/jellyfin-plugin-sso#194)', () => {
    expect(ipKey('64:ff9b::1.2.3.4')).toBe('1.2.3.4')
    expect(ipKey('64:ff9b::102:305')).toBe('1.2.3.5')
    expect(ipKey('::ffff:0:1.2.3.4')).toBe('1.2.3.4')
  })

  it('does not look for IPv4 where the network decides which bits hold it', () => {
    expect(ipKey('64:ff9b:1::1.2.3.4')).toBe('64:ff9b:1::')
    expect(ipKey('64:ff9b:0:1::1.2.3.4')).toBe('64:ff9b:0:1::')
    expect(ipKey('2002:102:304:5::1')).toBe('2002:102:304:5::')
    expect(ipKey('::1')).toBe('::')
  })

  it.each(['unix', '', 'unknown', 'not an address'])('leaves %j as it is', (text) => expect(ipKey(text)).toBe(text))

  it('is its own key', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (ip) => {
        expect(ipKey(ipKey(ip))).toBe(ipKey(ip))
      }),
    )
  })

  it('stays right when more addresses came by than it remembers', () => {
    for (let i = 0; i < 10_000; i++)
      expect(ipKey(`2001:db8:${i.toString(16)}::1`)).toBe(ipKey(`2001:db8:${i.toString(16)}::2`))
  })
})
