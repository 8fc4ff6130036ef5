import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '../errors.ts'
import { clientAddress, type TrustOptions, trustSettings } from './client-address.ts'

const PROXY = '10.0.0.1'

function ask(options: TrustOptions, peer: string | undefined, ...lines: string[]) {
  const field = (options.clientAddress ?? 'x-forwarded-for').toLowerCase()
  return clientAddress(peer, (name) => (name === field && lines.length > 0 ? lines : undefined), trustSettings(options))
}

const ipOf = (options: TrustOptions, peer: string | undefined, ...lines: string[]) => ask(options, peer, ...lines).ip

describe('clientAddress', () => {
  const byNetwork = { trustedProxies: ['10.0.0.0/8'] }

  it('believes nobody by default (everruns/everruns#2643)', () => {
    expect(ask({}, '203.0.113.1', '198.51.100.7')).toEqual({ ip: '203.0.113.1', trusted: false })
  })

  it('does not believe a peer outside the trusted networks (everruns/everruns#2643)', () => {
    expect(ask(byNetwork, '203.0.113.1', '198.51.100.7')).toEqual({ ip: '203.0.113.1', trusted: false })
  })

  it('believes what the proxy wrote on the right, whatever callers write on the left (everruns/everruns#2643)', () => {
    const prefix = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.string().filter((text) => !text.includes(',')),
    )
    fc.assert(
      fc.property(prefix, (left) => {
        expect(ask(byNetwork, PROXY, `${left}, 203.0.113.9`)).toEqual({ ip: '203.0.113.9', trusted: true })
        expect(ipOf({ trustedHops: 1 }, PROXY, `${left}, 203.0.113.9`)).toBe('203.0.113.9')
      }),
      { numRuns: 100 },
    )
  })

  it('counts hops from the right as configured (pierreb-devkit/Node#3933)', () => {
    const list = '198.51.100.66, 203.0.113.9, 172.16.0.1'
    expect(ipOf({ trustedHops: 1 }, PROXY, list)).toBe('172.16.0.1')
    expect(ipOf({ trustedHops: 2 }, PROXY, list)).toBe('203.0.113.9')
    expect(ask({ trustedHops: 2 }, PROXY, list).trusted).toBe(true)
  })

  it('takes the peer where the list is shorter than the hop count, never "undefined" (codelibs/fess#3360)', () => {
    expect(ipOf({ trustedHops: 2 }, PROXY, '203.0.113.9')).toBe(PROXY)
    expect(ipOf({ trustedHops: 3 }, PROXY, '203.0.113.9, 172.16.0.1')).toBe(PROXY)
    expect(ipOf({ trustedHops: 2 }, PROXY, ', ,203.0.113.9,')).toBe(PROXY)
    expect(ipOf({ trustedHops: 1 }, PROXY)).toBe(PROXY)
    expect(ipOf({ trustedHops: 1 }, PROXY, '')).toBe(PROXY)
  })

  it('walks on while proxies are trusted, and stops at the first that is not', () => {
    expect(ipOf(byNetwork, PROXY, '198.51.100.66, 203.0.113.9, 10.9.9.9, 10.0.0.7')).toBe('203.0.113.9')
  })

  it('takes the last trusted address where all are trusted', () => {
    expect(ipOf(byNetwork, PROXY, '10.1.1.1, 10.2.2.2')).toBe('10.1.1.1')
  })

  it('ends at the last trusted address where an entry is no address (Lore-Hex/quill-router#402)', () => {
    expect(ipOf(byNetwork, PROXY, '198.51.100.66, unknown, 10.2.2.2')).toBe('10.2.2.2')
    expect(ipOf(byNetwork, PROXY, '198.51.100.66, undefined')).toBe(PROXY)
    expect(ipOf({ trustedHops: 2 }, PROXY, '198.51.100.66, _hidden, 10.2.2.2')).toBe('10.2.2.2')
    expect(ipOf({ trustedHops: 2 }, PROXY, '198.51.100.66, _hidden')).toBe(PROXY)
    expect(ipOf({ trustedHops: 1 }, PROXY, '198.51.100.66, 010.1.1.1')).toBe(PROXY)
  })

  it('reads entries with ports, brackets, zones and IPv4 inside IPv6', () => {
    expect(ipOf(byNetwork, PROXY, '203.0.113.9:5678')).toBe('203.0.113.9')
    expect(ipOf(byNetwork, PROXY, '[2001:DB8::1]:4711')).toBe('2001:db8::1')
    expect(ipOf(byNetwork, PROXY, '"[2001:db8::1]:4711"')).toBe('2001:db8::1')
    expect(ipOf(byNetwork, PROXY, 'fe80::1%eth0')).toBe('fe80::1')
    expect(ipOf(byNetwork, PROXY, '203.0.113.9, ::ffff:10.2.2.2')).toBe('203.0.113.9')
  })

  it('knows a trusted peer in the form that a dual-stack socket gives', () => {
    expect(ask(byNetwork, '::ffff:10.0.0.1', '203.0.113.9')).toEqual({ ip: '203.0.113.9', trusted: true })
    expect(ask({}, '::ffff:203.0.113.1')).toEqual({ ip: '203.0.113.1', trusted: false })
  })

  it('joins several lines of the field in order', () => {
    expect(ipOf(byNetwork, PROXY, '198.51.100.66', '203.0.113.9', '10.2.2.2')).toBe('203.0.113.9')
    expect(ipOf({ trustedHops: 2 }, PROXY, '198.51.100.66, 203.0.113.9', '172.16.0.1')).toBe('203.0.113.9')
  })

  it('reads the one field that is configured', () => {
    expect(ipOf({ ...byNetwork, clientAddress: 'CF-Connecting-IP' }, PROXY, '203.0.113.9')).toBe('203.0.113.9')
    const trust = trustSettings({ ...byNetwork, clientAddress: 'x-real-ip' })
    expect(clientAddress(PROXY, (name) => (name === 'x-forwarded-for' ? ['198.51.100.66'] : undefined), trust).ip).toBe(
      PROXY,
    )
  })

  describe('with the Forwarded field', () => {
    const forwarded = { ...byNetwork, clientAddress: 'forwarded' }

    it.each([
      ['for=203.0.113.9', '203.0.113.9'],
      ['For="203.0.113.9:47011";proto=http;by=10.0.0.1', '203.0.113.9'],
      ['proto=https; for="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
      ['for=198.51.100.66, for=203.0.113.9', '203.0.113.9'],
      ['for=203.0.113.9, for=10.2.2.2;by=10.0.0.1', '203.0.113.9'],
      ['for="203.0.113\\.9"', '203.0.113.9'],
    ])('reads %s as %s', (value, expected) => expect(ipOf(forwarded, PROXY, value)).toBe(expected))

    it.each([
      'for=unknown',
      'for=_hidden',
      'for=_SEVKISEK',
      'by=203.0.113.9',
      'for=',
      'for',
      'for=198.51.100.1;for=198.51.100.2',
      'for="',
    ])('ends the walk at %s', (value) => {
      expect(ipOf(forwarded, PROXY, `for=198.51.100.66, ${value}, for=10.2.2.2`)).toBe('10.2.2.2')
      expect(ipOf(forwarded, PROXY, value)).toBe(PROXY)
    })

    it('lets no quote of a caller swallow what the proxy appended (everruns/everruns#2643)', () => {
      const left = fc.string({ unit: fc.constantFrom('"', '\\', ',', ';', '=', 'for', ' ', '198.51.100.66', 'x') })
      fc.assert(
        fc.property(
          left,
          fc.constantFrom('for=203.0.113.9', 'for="203.0.113.9:80"', 'by=_x;for="203.0.113.9"'),
          (text, own) => {
            expect(ipOf(forwarded, PROXY, `${text}, ${own}`)).toBe('203.0.113.9')
            expect(ipOf(forwarded, PROXY, text, own)).toBe('203.0.113.9')
          },
        ),
        { numRuns: 500 },
      )
    })

    it('does not hang on a long line of quotes', () => {
      expect(ipOf(forwarded, PROXY, `for="${'\\"'.repeat(500_000)}`)).toBe(PROXY)
      expect(ipOf(forwarded, PROXY, `for=${'";'.repeat(500_000)}`)).toBe(PROXY)
    })
  })

  describe('of a unix socket', () => {
    it.each([undefined, ''])('counts as unix where no field came (peer %j)', (peer) => {
      expect(ask({}, peer)).toEqual({ ip: 'unix', trusted: true })
      expect(ask({ trustedHops: 2 }, peer, '203.0.113.9')).toEqual({ ip: 'unix', trusted: true })
    })

    it('is trusted: the proxy on the other end says who the caller is', () => {
      expect(ask({}, undefined, '198.51.100.66, 203.0.113.9')).toEqual({ ip: '203.0.113.9', trusted: true })
      expect(ipOf(byNetwork, undefined, '203.0.113.9, 10.2.2.2')).toBe('203.0.113.9')
      expect(ipOf({}, undefined, 'unknown')).toBe('unix')
    })
  })

  it('gives an address or unix whatever the field holds', () => {
    const text = fc.oneof(
      fc.string(),
      fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('', 'unknown', 'for=_x', '"'))).map((x) => x.join(',')),
    )
    const options = fc.constantFrom<TrustOptions>(
      byNetwork,
      { trustedHops: 1 },
      { trustedHops: 3 },
      { ...byNetwork, clientAddress: 'forwarded' },
    )
    fc.assert(
      fc.property(text, options, fc.constantFrom(undefined, PROXY, '203.0.113.1'), (value, trust, peer) => {
        expect(ipOf(trust, peer, value)).toMatch(/^(unix|[0-9a-f:.]+)$/)
      }),
    )
  })

  it('stays right when more peers came by than it remembers', () => {
    const trust = trustSettings(byNetwork)
    for (let i = 0; i < 10_000; i++) {
      const peer = `192.0.${i >> 8}.${i & 255}`
      expect(clientAddress(peer, () => ['198.51.100.66'], trust)).toEqual({ ip: peer, trusted: false })
    }
    expect(trust.peers.size).toBeLessThanOrEqual(4096)
  })
})

describe('trustSettings', () => {
  it.each([
    [{ trustedProxies: ['10.0.0.0/8', '10.0.0'] }, 'trustedProxies[1]: "10.0.0" is not a network'],
    [{ trustedHops: -1 }, 'trustedHops: -1 is not a number of proxies'],
    [{ trustedHops: 1.5 }, 'trustedHops: 1.5 is not a number of proxies'],
    [{ trustedHops: 1, trustedProxies: ['10.0.0.0/8'] }, 'trustedHops: stands beside trustedProxies'],
    [{ clientAddress: 'x forwarded' }, 'clientAddress: "x forwarded" is not a field'],
  ])('refuses %j', (options, message) => {
    expect(() => trustSettings(options)).toThrow(InvalidArgumentError)
    expect(() => trustSettings(options)).toThrow(message)
  })

  it('refuses a misspelt option, which would trust nobody without a word', () => {
    const misspelt = { trustedProxy: ['10.0.0.0/8'] } as TrustOptions
    expect(() => trustSettings(misspelt)).toThrow(
      'trustSettings.trustedProxy: no such option; there are trustedProxies, trustedHops, clientAddress',
    )
  })
})
