import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '../errors.ts'
import { ipMatcher } from './cidr.ts'

describe('ipMatcher', () => {
  it.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.1.2.3/8', '10.9.9.9', true],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['10.0.0.0/8', '::ffff:a01:203', true],
    ['::ffff:10.0.0.0/104', '10.1.2.3', true],
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::1', true],
    ['::/0', '203.0.113.9', false],
    ['::1', '::1', true],
    ['10.0.0.0/8', 'unix', false],
    ['10.0.0.0/8', '', false],
  ])('%s holds %s: %s', (network, ip, expected) => expect(ipMatcher([network], 'ip')(ip)).toBe(expected))

  it('agrees with node:net on networks of one family', () => {
    const v4 = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }), fc.ipV4(), fc.constant('ipv4' as const))
    const v6 = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 }), fc.ipV6(), fc.constant('ipv6' as const))
    const mapped = /^(0*:)+0*:?ffff:/i
    fc.assert(
      fc.property(fc.oneof(v4, v6), ([base, bits, ip, family]) => {
        fc.pre(!mapped.test(base) && !mapped.test(ip))
        const list = new BlockList()
        list.addSubnet(base, bits, family)
        expect(ipMatcher([`${base}/${bits}`], 'ip')(ip)).toBe(list.check(ip, family))
        expect(ipMatcher([`${base}/${bits}`], 'ip')(base)).toBe(true)
      }),
    )
  })

  it.each([
    '',
    'all',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '10/8',
    '2001:db8::/129',
    'fe80::1%eth0/64',
    '10.0.0.0/8/8',
    7,
  ])('names %j as no network, with its place', (bad) => {
    const networks = ['10.0.0.0/8', bad as string]
    expect(() => ipMatcher(networks, 'trustedProxies')).toThrow(InvalidArgumentError)
    expect(() => ipMatcher(networks, 'trustedProxies')).toThrow(
      /^trustedProxies\[1\]: .* is not a network; write one such as "10\.0\.0\.0\/8"/,
    )
  })
})
