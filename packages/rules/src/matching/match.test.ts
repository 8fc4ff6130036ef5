import { createEngine, memoryStore } from 'headgate'
import { describe, expect, it } from 'vitest'
import { itemsOf, keys, type RequestParts, request, rules } from '../test-support/rules.ts'

const limited = (match: string) =>
  rules(`rules: [{ name: r, description: d, match: ${match}, limits: [{ by: ip, limit: 5/s }] }]`)
const matches = (match: string, parts: RequestParts) => itemsOf(limited(match), parts).length === 1

describe('match', () => {
  it.each([
    ['{}', {}, true],
    ['{ path: [/a, /b] }', { path: '/b' }, true],
    ['{ path: /a, method: POST }', { path: '/a' }, false],
    ['{ method: GET }', { method: 'HEAD' }, true],
    ['{ method: HEAD }', { method: 'GET' }, false],
    ['{ method: [POST, PUT] }', { method: 'PUT' }, true],
    ['{ host: api.example.com }', {}, true],
    ['{ host: API.example.com }', { host: 'api.example.com.' }, true],
    ['{ host: "*.example.com" }', {}, true],
    ['{ host: "*.example.com" }', { host: 'a.b.example.com' }, true],
    ['{ host: "*.example.com" }', { host: 'example.com' }, false],
    ['{ host: "*.example.com" }', { host: 'evilexample.com' }, false],
    ['{ header: { X-Plan: free } }', { headers: { 'x-plan': 'free' } }, true],
    ['{ header: { x-plan: free } }', { headers: { 'x-plan': 'Free' } }, false],
    ['{ header: { x-plan: [free, trial] } }', { headers: { 'x-plan': ['gold', 'trial'] } }, true],
    ['{ header: { x-plan: "*" } }', { headers: { 'x-plan': 'any' } }, true],
    ['{ header: { x-plan: "*" } }', {}, false],
    ['{ header: { a: "1", b: "2" } }', { headers: { a: '1' } }, false],
    ['{ ip: 203.0.113.0/24 }', {}, true],
    ['{ ip: [10.0.0.0/8, 2001:db8::/32] }', { ip: '2001:db8::1' }, true],
    ['{ ip: 203.0.113.0/24 }', { ip: '::ffff:203.0.113.9' }, true],
    ['{ ip: 203.0.113.0/24 }', { ip: 'unix' }, false],
    ['{ not: { path: /health } }', { path: '/health' }, false],
    ['{ not: { path: /health, method: GET } }', { path: '/health', method: 'POST' }, true],
    ['{ path: /*, not: { ip: 203.0.113.9 } }', {}, false],
    ['{ not: { method: GET } }', { method: 'HEAD' }, false],
  ])('%s on %j: %s', (match, parts, expected) => {
    expect(matches(match, parts as RequestParts)).toBe(expected)
  })

  const preflight = { method: 'OPTIONS', headers: { 'access-control-request-method': 'PUT' } }

  it('leaves CORS preflight alone where no method is named (fastify-rate-limit#131)', () => {
    expect(matches('{}', preflight)).toBe(false)
    expect(matches('{ path: / }', preflight)).toBe(false)
    expect(matches('{}', { method: 'OPTIONS' })).toBe(true)
    expect(matches('{ method: OPTIONS }', preflight)).toBe(true)
    expect(matches('{ method: OPTIONS }', { method: 'OPTIONS' })).toBe(true)
    expect(matches('{ method: GET }', preflight)).toBe(false)
  })

  it('counts HEAD with GET, once (fastify-rate-limit#131)', () => {
    const file = limited('{ path: /a, method: GET }')
    expect(keys(file, { path: '/a', method: 'HEAD' })).toEqual(keys(file, { path: '/a', method: 'GET' }))
  })
})

describe('rules together', () => {
  const file = rules(`
rules:
  - { name: bad-net, description: d, match: { ip: 198.51.100.0/24 }, deny: true }
  - { name: office, description: d, match: { ip: [10.0.0.0/8, 198.51.100.7] }, allow: true }
  - { name: all, description: d, match: { path: /* }, limits: [{ by: global, limit: 9/s }] }
  - { name: login, description: d, match: { path: /login }, limits: [{ by: ip, limit: 5/s }, { name: ip-day, by: ip, limit: 50/day }] }
  - { name: off, description: d, mode: off, limits: [{ by: ip, limit: 1/s }] }
  - { name: also-off, description: d, mode: false, deny: true }`)

  it('all apply, as one check, in the order of the file', () => {
    const match = file.match(request({ path: '/login' }))
    expect(match).toMatchObject({
      outcome: 'check',
      rules: [
        { name: 'all', globalLimits: ['global'] },
        { name: 'login', globalLimits: [] },
      ],
    })
    expect(keys(file, { path: '/login' })).toEqual(['all:global:', 'login:ip:203.0.113.9', 'login:ip-day:203.0.113.9'])
  })

  it('deny beats allow beats limits', () => {
    expect(file.match(request({ ip: '198.51.100.7' }))).toEqual({ outcome: 'deny', rule: 'bad-net' })
    expect(file.match(request({ ip: '10.1.1.1', path: '/login' }))).toEqual({ outcome: 'allow', rule: 'office' })
  })

  it('deny holds for CORS preflight too, or a refused caller could go on asking', () => {
    const preflight = { method: 'OPTIONS', headers: { 'access-control-request-method': 'PUT' } }
    expect(file.match(request({ ...preflight, ip: '198.51.100.9' }))).toMatchObject({ outcome: 'deny' })
  })

  it('give one object for a rule as long as they live', () => {
    const of = () => {
      const match = file.match(request({ path: '/login' }))
      return match.outcome === 'check' ? match.rules : []
    }
    expect(of()[1]).toBe(of()[1])
  })

  it('that match nothing leave an empty check', () => {
    expect(rules('rules: []').match(request())).toEqual({ outcome: 'check', items: [], rules: [] })
  })

  it('of one path list share one budget (fastify-rate-limit#463)', () => {
    const group = limited('{ path: [/a, /b] }')
    expect(keys(group, { path: '/a' })).toEqual(keys(group, { path: '/b' }))
  })

  it('are each counted once, and each in full, on one route (express-rate-limit#395)', async () => {
    const three = rules(`rules:
  - { name: r, description: d, limits: [{ name: m, by: ip, limit: 20/m }, { name: t, by: ip, limit: 200/10m }, { name: h, by: ip, limit: 1200/h }] }`)
    const engine = createEngine({ store: memoryStore() })
    const items = itemsOf(three, {})
    for (let i = 0; i < 20; i++) expect((await engine.check(items)).allowed).toBe(true)
    const decision = await engine.check(items)
    expect(decision).toMatchObject({ allowed: false, limitedBy: 'm' })
    expect(decision.limits.map(({ limit, remaining }) => limit - remaining)).toEqual([20, 20, 20])
    await engine.close()
  })
})

describe('otherwise', () => {
  const file = rules(`
rules:
  - { name: rest, description: d, match: { otherwise: true }, limits: [{ by: ip, limit: 9/s }] }
  - { name: rest-post, description: d, match: { otherwise: true, method: POST }, limits: [{ by: ip, limit: 1/s }] }
  - { name: login, description: d, match: { path: /login }, limits: [{ by: ip, limit: 5/s }] }
  - { name: off, description: d, match: { path: /off }, mode: off, limits: [{ by: ip, limit: 5/s }] }`)

  it('takes the paths that have no rule, so that scanning is not free (fastify-rate-limit#59)', () => {
    expect(keys(file, { path: '/wp-admin.php' })).toEqual(['rest:ip:203.0.113.9'])
    expect(keys(file, { path: '/login' })).toEqual(['login:ip:203.0.113.9'])
    expect(keys(file, { path: '/x', method: 'POST' })).toEqual(['rest:ip:203.0.113.9', 'rest-post:ip:203.0.113.9'])
  })

  it('takes what only a rule that is off would match', () => {
    expect(keys(file, { path: '/off' })).toEqual(['rest:ip:203.0.113.9'])
  })
})

describe('overrides', () => {
  const file = rules(`
dimensions: { user: { header: x-user } }
rules:
  - name: r
    description: d
    limits: [{ by: user, limit: 5/s, overrides: { acme: 100/s, "free-*": 2/s, "free-gold-*": { limit: 3/s, burst: 9 }, vip: unlimited, banned: 0/s, __proto__: 7/s } }]
  - name: s
    description: d
    limits: [{ by: ip, limit: 5/s, overrides: { "2001:DB8:1:2::5": 8/s, "10.*": 9/s } }]`)
  const limitOf = (user: string) =>
    itemsOf(file, { headers: { 'x-user': user } }).find(({ rule }) => rule === 'r')?.limit

  it.each([
    ['ann', 5, 5],
    ['acme', 100, 100],
    ['acme2', 5, 5],
    ['free-1', 2, 2],
    ['free-gold-1', 3, 9],
    ['free-', 2, 2],
    ['banned', 0, 0],
    ['__proto__', 7, 7],
    ['constructor', 5, 5],
  ])('of %s: %d, burst %d', (user, limit, capacity) => {
    expect(limitOf(user)).toMatchObject({ limit, capacity })
  })

  it('may lift the limit', () => {
    expect(limitOf('vip')).toBeUndefined()
  })

  it('leave the key as it is', () => {
    expect(keys(file, { headers: { 'x-user': 'acme' } })[0]).toBe('r:user:acme')
  })

  it('do not apply to callers by address of a dimension that is missing', () => {
    expect(itemsOf(file, { ip: '10.1.1.1' })[0]?.limit).toMatchObject({ limit: 5 })
  })

  it('of addresses hold for all spellings', () => {
    const of = (ip: string) => itemsOf(file, { ip }).at(-1)?.limit.limit
    expect([of('2001:db8:1:2::99'), of('10.7.7.7'), of('11.0.0.1')]).toEqual([8, 9, 5])
  })
})

describe('cost', () => {
  const file = (cost: string) =>
    rules(`rules: [{ name: r, description: d, cost: ${cost}, limits: [{ by: ip, limit: 500/s }] }]`)
  const of = (cost: string, parts: RequestParts) => itemsOf(file(cost), parts)[0]?.cost
  const ranged = '{ header: X-Cost, min: 2, max: 100 }'

  it.each([
    ['7', 7],
    ['1', 2],
    ['1000', 100],
    ['99999999999999999999999', 100],
    ['-5', 100],
    ['1.5', 100],
    ['NaN', 100],
    ['', 100],
    ['0x10', 100],
    [' 7 ', 7],
  ])('of %j from a trusted peer is %d', (value, cost) => {
    expect(of(ranged, { trusted: true, headers: { 'x-cost': value } })).toBe(cost)
  })

  it('said twice differently is the greatest', () => {
    expect(of(ranged, { trusted: true, headers: { 'x-cost': ['3', '4'] } })).toBe(100)
    expect(of(ranged, { trusted: true, headers: { 'x-cost': ['3', '3'] } })).toBe(3)
  })

  it('absent, or from a peer that is not trusted, is the least', () => {
    expect(of(ranged, { trusted: true })).toBe(2)
    expect(of(ranged, { headers: { 'x-cost': '50' } })).toBe(2)
    expect(of('{ header: x-cost, max: 100, fromAnyone: true }', { headers: { 'x-cost': '50' } })).toBe(50)
    expect(of('{ header: x-cost }', { trusted: true, headers: { 'x-cost': '50' } })).toBe(1)
  })

  it('may be a number', () => {
    expect(of('3', {})).toBe(3)
    expect(itemsOf(rules('rules: [{ name: r, description: d, limits: [{ by: ip, limit: 5/s }] }]'), {})[0]?.cost).toBe(
      1,
    )
  })
})

describe('what a rule does not say', () => {
  const file = rules(`
defaults: { onStoreFailure: closed, headers: both, mode: off }
rules:
  - { name: a, description: d, mode: enforce, limits: [{ by: ip, limit: 5/s }] }
  - { name: b, description: d, mode: enforce, onStoreFailure: open, headers: off, disclose: true, limits: [{ by: ip, limit: 5/s, algorithm: fixed-window, align: first-hit }] }
  - { name: c, description: d, limits: [{ by: ip, limit: 5/s }] }`)

  it('the defaults say', () => {
    const match = file.match(request())
    expect(match).toMatchObject({
      items: [
        { rule: 'a', onStoreFailure: 'closed', limit: { algorithm: 'token-bucket' } },
        { rule: 'b', onStoreFailure: 'open', limit: { algorithm: 'fixed-window' } },
      ],
      rules: [
        { name: 'a', headers: 'both', disclose: false },
        { name: 'b', headers: 'off', disclose: true },
      ],
    })
  })
})
