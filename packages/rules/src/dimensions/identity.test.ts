import fc from 'fast-check'
import { hashValue } from 'headgate'
import { describe, expect, it } from 'vitest'
import { itemsOf, keyOf, keys, request, rules } from '../test-support/rules.ts'

const file = rules(`
dimensions:
  user: { header: x-user }
  team: { header: x-team }
  secret: { header: x-secret, secret: true }
rules:
  - name: r
    description: d
    limits: [{ by: user, limit: 5/s }, { by: [user, team], limit: 5/s }, { by: secret, limit: 5/s }, { by: ip, limit: 5/s }]
`)

/** Texts that try to look like something else. */
const nasty = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }),
  fc.constantFrom(
    '127.0.0.1',
    '~ip:127.0.0.1',
    '~ip',
    '~',
    ':',
    'a:b',
    'a',
    'b',
    '%3A',
    '%',
    '{x}',
    '*',
    '\0',
    '\r\n',
    '\ud800',
    '\udfff',
    '\ufffd',
    'é',
    'e\u0301',
    '2001:db8::',
    '1',
    '23',
    '12',
    '3',
  ),
  fc.constantFrom('a', 'b').map((last) => 'x'.repeat(200) + last),
)
const caller = fc.record({
  user: fc.option(nasty, { nil: undefined }),
  team: fc.option(nasty, { nil: undefined }),
  ip: fc.constantFrom('127.0.0.1', '127.0.0.2', '2001:db8:1:2::1', '2001:db8:1:3::1'),
})
type Caller = { user: string | undefined; team: string | undefined; ip: string }

function keysOf({ user, team, ip }: Caller): string[] {
  const headers = {
    ...(user === undefined ? {} : { 'x-user': user, 'x-secret': user }),
    ...(team === undefined ? {} : { 'x-team': team }),
  }
  return keys(file, { ip, headers })
}

/** Who a limit takes a caller for: a value, or else the address. */
const who = (value: string | undefined, ip: string) => (value === undefined ? { ip } : { value })

describe('the key of a caller', () => {
  it('differs for different identities and is one for one identity (fluojs/fluo#385, better-auth#7300)', () => {
    fc.assert(
      fc.property(caller, caller, (a: Caller, b: Caller) => {
        const [aKeys, bKeys] = [keysOf(a), keysOf(b)]
        const identities = ({ user, team, ip }: Caller) => [
          [who(user, ip)],
          [who(user, ip), who(team, ip)],
          [who(user, ip)],
        ]
        identities(a).forEach((identity, i) => {
          const same = JSON.stringify(identity) === JSON.stringify(identities(b)[i])
          expect(aKeys[i] === bKeys[i]).toBe(same)
        })
      }),
      { numRuns: 3000 },
    )
  })

  it('holds nothing that could split it or choose a slot in Redis', () => {
    fc.assert(
      fc.property(caller, (a: Caller) => {
        const [single = '', composite = ''] = keysOf(a).map((key) => key.split(':').slice(2).join(':'))
        expect(single).toMatch(/^(~ip:)?[\w.@%~-]*$/)
        expect(composite).toMatch(/^(~ip:)?[\w.@%~-]*:(~ip:)?[\w.@%~-]*$/)
      }),
    )
  })

  it('of a rule a:b cannot be another rule a, since names have no colon (ACCESS-NYC#517)', () => {
    expect(() => rules('rules: [{ name: "a:b", limits: [{ by: ip, limit: 5/s }] }]')).toThrow('"a:b" is not a name')
  })

  it('is not cut: values of 200 characters that differ in the last one differ (ashita-ai/tessera#185)', () => {
    const of = (last: string) => keys(file, { headers: { 'x-user': 'x'.repeat(199) + last } })[0]
    expect(of('a')).not.toBe(of('b'))
    expect(of('a')).toMatch(/^r:user:~[\w-]{43}$/)
  })

  it('of a caller named like an address is not that of the address (dj-bolt#311)', () => {
    const named = keys(file, { headers: { 'x-user': '203.0.113.9' } })
    const nameless = keys(file, {})
    expect(named[0]).toBe('r:user:203.0.113.9')
    expect(nameless[0]).toBe('r:user:~ip:203.0.113.9')
  })
})

describe('a request without a value', () => {
  const by = (missing: string) =>
    rules(`
dimensions: { key: { header: x-api-key, missing: ${missing} } }
rules: [{ name: r, description: d, limits: [{ by: key, limit: 5/s }, { by: ip, limit: 9/s }] }]`)

  it('is counted by address in a room of its own (traefik/traefik#7129)', () => {
    expect(keys(by('ip'), {})).toEqual(['r:key:~ip:203.0.113.9', 'r:ip:203.0.113.9'])
    expect(keys(by('ip'), { ip: '198.51.100.1' })[0]).toBe('r:key:~ip:198.51.100.1')
    expect(keys(by('ip'), { headers: { 'x-api-key': '' } })[0]).toBe('r:key:~ip:203.0.113.9')
    expect(keys(by('ip'), { headers: { 'x-api-key': ['a', 'b'] } })[0]).toBe('r:key:~ip:203.0.113.9')
  })

  it('escapes that limit where the file says skip (spring-cloud-gateway#624)', () => {
    expect(keys(by('skip'), {})).toEqual(['r:ip:203.0.113.9'])
  })

  it('is refused where the file says deny (rustango#1252)', () => {
    expect(by('deny').match(request())).toEqual({ outcome: 'missing', rule: 'r', dimension: 'key' })
  })

  it('is never counted as "undefined"', () => {
    for (const missing of ['ip', 'skip']) expect(keys(by(missing), {}).join()).not.toContain('undefined')
    expect(keys(by('ip'), { headers: { 'x-api-key': 'undefined' } })[0]).toBe('r:key:undefined')
  })

  it('a dimension that is not defined is an error', () => {
    expect(() => rules('rules: [{ name: r, limits: [{ by: apiKey, limit: 5/s }] }]')).toThrow(
      '"apiKey" is no dimension',
    )
  })
})

describe('a key that anybody may claim', () => {
  it('does not lift the limit by address that stands before it (TencentCloud/CubeSandbox#1379)', () => {
    const both = rules(`
dimensions: { key: { header: x-api-key } }
rules:
  - { name: before, description: d, limits: [{ by: ip, limit: 20/m }] }
  - { name: keyed, description: d, limits: [{ by: key, limit: 5/m }] }`)
    for (let i = 0; i < 100; i++) {
      expect(keys(both, { headers: { 'x-api-key': `random-${i}` } })).toEqual([
        'before:ip:203.0.113.9',
        `keyed:key:random-${i}`,
      ])
    }
  })

  it('cannot name the counter of callers without one', () => {
    expect(keys(file, { headers: { 'x-user': '~ip:203.0.113.9' } })[0]).toBe('r:user:%7Eip%3A203.0.113.9')
  })
})

describe('an address', () => {
  const ip = (address: string) => keys(file, { ip: address }).at(-1)

  it('of IPv6 counts by its /64, whatever its spelling (express-rate-limit#502)', () => {
    for (const host of ['1', '2', 'ffff:1', 'a:b:c:d', '0', 'dead:beef:0:1']) {
      expect(ip(`2001:db8:1:2:${host.split(':').length === 4 ? host : `:${host}`}`)).toBe(
        'r:ip:2001%3Adb8%3A1%3A2%3A%3A',
      )
    }
    expect(ip('2001:DB8:1:2:0:0:0:1')).toBe(ip('2001:db8:1:2::1'))
    expect(ip('2001:db8:1:2::1%eth0')).toBe(ip('2001:db8:1:2::1'))
    expect(ip('2001:db8:1:3::1')).not.toBe(ip('2001:db8:1:2::1'))
  })

  it('of IPv4 inside IPv6 is that IPv4 address (express-rate-limit#667)', () => {
    expect(ip('::ffff:1.2.3.4')).toBe('r:ip:1.2.3.4')
    expect(ip('::ffff:102:304')).toBe('r:ip:1.2.3.4')
    expect(ip('::ffff:1.2.3.5')).toBe('r:ip:1.2.3.5')
    expect(ip('2001:db8:1234:5678::1.2.3.4')).toBe('r:ip:2001%3Adb8%3A1234%3A5678%3A%3A')
  })

  it('is counted by network where a dimension says so', () => {
    const nets = rules(`
dimensions: { net: { address: { v4: 24, v6: 56 } }, wide: { address: {} } }
rules: [{ name: r, description: d, limits: [{ by: net, limit: 5/s }, { by: wide, limit: 5/s }] }]`)
    const of = (address: string) =>
      keys(nets, { ip: address }).map((key) => decodeURIComponent(key.split(':')[2] ?? ''))
    expect(of('203.0.113.9')).toEqual(['203.0.113.0/24', '203.0.113.9/32'])
    expect(of('::ffff:203.0.113.9')).toEqual(['203.0.113.0/24', '203.0.113.9/32'])
    expect(of('2001:db8:1:2ff::1')).toEqual(['2001:db8:1:200::/56', '2001:db8:1:2ff::/64'])
    expect(of('unix')).toEqual(['unix', 'unix'])
  })

  it('of a unix socket counts as unix', () => {
    expect(ip('unix')).toBe('r:ip:unix')
  })
})

describe('a secret value', () => {
  const secret = (keySecret: string) =>
    rules(`
keySecret: "${keySecret}"
dimensions: { token: { header: authorization, secret: true }, long: { header: x-long } }
rules: [{ name: r, description: d, limits: [{ by: token, limit: 5/s }, { by: long, limit: 5/s }] }]`)
  const headers = { authorization: 'Bearer abc', 'x-long': 'y'.repeat(300) }

  it('is only there as a hash', () => {
    expect(keys(secret(''), { headers })[0]).toBe(`r:token:${hashValue('Bearer abc')}`)
  })

  it('is hashed under keySecret where there is one, long values too', () => {
    expect(keys(secret('pepper'), { headers })).toEqual([
      `r:token:${hashValue('Bearer abc', 'pepper')}`,
      `r:long:${hashValue('y'.repeat(300), 'pepper')}`,
    ])
  })
})

describe('an e-mail address as a key', () => {
  const mails = (options: string) =>
    rules(`
dimensions: { mail: { query: email${options} } }
rules: [{ name: r, description: d, limits: [{ by: mail, limit: 5/s }] }]`)
  const of = (options: string, email: string) =>
    keys(mails(options), { query: new URLSearchParams({ email }).toString() })
  const spellings = ['victim@example.org', 'VICTIM@example.org', ' victim@example.org ', 'Victim@Example.org']

  it('is one caller in all spellings with normalize: email (rack/rack-attack#493)', () => {
    for (const spelling of spellings) expect(of(', normalize: email', spelling)).toEqual(['r:mail:victim@example.org'])
    expect(of(', normalize: email', 'jose\u0301@x.org')).toEqual(of(', normalize: email', 'JOSÉ@x.org'))
  })

  it('is a caller for each spelling without it (onetimesecret#3939)', () => {
    expect(new Set(spellings.map((spelling) => of('', spelling)[0])).size).toBe(spellings.length)
  })
})

describe('other dimensions', () => {
  const all = rules(`
dimensions:
  session: { cookie: sid }
  order: { path: id }
rules:
  - name: r
    description: d
    match: { path: [/orders/:id, /orders/:id/lines/*] }
    limits: [{ by: session, limit: 5/s }, { by: order, limit: 5/s }, { by: method, limit: 5/s }, { by: host, limit: 5/s }, { by: route, limit: 5/s }]
  - { name: s, description: d, limits: [{ by: route, limit: 5/s }] }`)
  const of = (parts: Parameters<typeof keys>[1]) => keys(all, { headers: { cookie: 'sid=abc' }, ...parts })

  it('read cookies, path parameters, method, host and route', () => {
    expect(of({ path: '/orders/A%20b/', method: 'HEAD' })).toEqual([
      'r:session:abc',
      'r:order:A%20b',
      'r:method:GET',
      'r:host:api.example.com',
      'r:route:%2Forders%2F%3Aid',
      's:route:',
    ])
    expect(of({ path: '/orders/7/lines/8', host: '' }).slice(1, 5)).toEqual([
      'r:order:7',
      'r:method:GET',
      'r:host:~ip:203.0.113.9',
      'r:route:%2Forders%2F%3Aid%2Flines%2F%2A',
    ])
  })

  it('take the route of the request where the rule has no path', () => {
    expect(of({ path: '/x', route: '/x/*' })).toEqual(['s:route:%2Fx%2F%2A'])
  })

  it('count one path parameter in all its spellings', () => {
    expect(of({ path: '/orders/a%3Ab' })[1]).toBe(of({ path: '/orders/a:b' })[1])
  })

  it('keep the limits of one request apart', () => {
    const items = itemsOf(all, { path: '/orders/7', headers: { cookie: 'sid=abc' } })
    expect(new Set(items.map(keyOf)).size).toBe(items.length)
  })
})
