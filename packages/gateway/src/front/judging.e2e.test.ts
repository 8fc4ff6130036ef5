import { describe, expect, it } from 'vitest'
import { TestGateway } from '../test-support/gateway.ts'
import { ask, get, RawConnection } from '../test-support/raw-connection.ts'
import { TestUpstream } from '../test-support/upstream.ts'

const all = (limit: string, by = 'ip') => [{ name: 'all', match: { path: '/*' }, limits: [{ by, limit }] }]

describe('an allowed request', () => {
  it('is forwarded, and its answer carries the limits', async () => {
    const up = await TestUpstream.start((_req, res) => res.writeHead(201, { 'X-Answer': 'yes' }).end('hello'))
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('5/m') })
    const answer = await ask(address, get('/a/b?c=d', ['X-Ask: please']))
    expect(answer.status).toBe(201)
    expect(answer.field('x-answer')).toBe('yes')
    expect(answer.body.toString()).toBe('hello')
    expect(answer.field('ratelimit-policy')).toBe('"ip";q=5;w=60')
    expect(answer.field('ratelimit')).toMatch(/^"ip";r=4;t=\d+$/)
    expect(up.last.target).toBe('/a/b?c=d')
    expect(up.last.values('x-ask')).toEqual(['please'])
  })

  it('carries our limits once, also where the upstream sends its own', async () => {
    const up = await TestUpstream.start((_req, res) =>
      res
        .writeHead(200, {
          'RateLimit-Policy': '"x";q=1',
          RateLimit: '"x";r=0',
          'X-RateLimit-Limit': '1',
          'RateLimit-Reset': '9',
        })
        .end(),
    )
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('5/m') })
    const answer = await ask(address, get('/'))
    expect(answer.field('ratelimit-policy')).toBe('"ip";q=5;w=60')
    expect(answer.field('ratelimit')).toContain('"ip"')
    expect(answer.field('x-ratelimit-limit')).toBeUndefined()
    expect(answer.field('ratelimit-reset')).toBeUndefined()
  })

  it("keeps the upstream's own fields where no rule of ours applies", async () => {
    const up = await TestUpstream.start((_req, res) =>
      res.writeHead(429, { RateLimit: '"x";r=0', 'Retry-After': '7' }).end(),
    )
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const answer = await ask(address, get('/'))
    expect(answer.status).toBe(429)
    expect(answer.field('ratelimit')).toBe('"x";r=0')
    expect(answer.field('retry-after')).toBe('7')
  })

  it("keeps the upstream's Retry-After and adds none (alisaifee/flask-limiter#62)", async () => {
    const up = await TestUpstream.start((req, res) =>
      res.writeHead(req.url === '/busy' ? 503 : 200, req.url === '/busy' ? { 'Retry-After': '120' } : {}).end(),
    )
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('5/m') })
    expect((await ask(address, get('/busy'))).field('retry-after')).toBe('120')
    expect((await ask(address, get('/'))).field('retry-after')).toBeUndefined()
  })
})

describe('a refused request', () => {
  it('is answered 429 with a problem and a whole number of seconds to wait (benwis/tower-governor#65)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('5/s') })
    const client = await RawConnection.open(address)
    for (let i = 0; i < 6; i++) client.write(get('/'))
    for (let i = 0; i < 5; i++) expect((await client.answer()).status).toBe(200)
    const refused = await client.answer()
    expect(refused.status).toBe(429)
    expect(refused.field('content-type')).toBe('application/problem+json')
    expect(refused.field('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(refused.field('ratelimit')).toBe('"ip";r=0;t=1')
    expect(JSON.parse(refused.body.toString())).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      status: 429,
      'violated-policies': ['ip'],
      retryAfterMs: expect.any(Number),
    })
    expect(up.seen.length).toBe(5)
  })

  it('has no body when it was a HEAD', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('0/s') })
    const client = await RawConnection.open(address)
    client.write(get('/', [], 'HEAD') + get('/', ['Connection: close']))
    expect((await client.answer({ head: true })).status).toBe(429)
    expect((await client.answer()).status).toBe(429)
    expect((await client.closed()).length).toBe(0)
  })

  it('may be read by pages of the named origins only', async () => {
    const up = await TestUpstream.start()
    const gateway = { cors: { origins: ['https://shop.example'] } }
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('0/s'), gateway })
    const known = await ask(address, get('/', ['Origin: https://shop.example']))
    expect(known.field('access-control-allow-origin')).toBe('https://shop.example')
    expect(known.field('access-control-expose-headers')).toBe('RateLimit-Policy, RateLimit')
    expect(known.field('vary')).toBe('Origin')
    const stranger = await ask(address, get('/', ['Origin: https://evil.example']))
    expect(stranger.field('access-control-allow-origin')).toBeUndefined()
    expect(stranger.field('vary')).toBe('Origin')
  })

  it('by a list is answered 403, and by a missing dimension 400, without a charge', async () => {
    const up = await TestUpstream.start()
    const dimensions = { user: { header: 'x-user-id', missing: 'deny' } }
    const rules = [
      { name: 'closed', match: { path: '/closed' }, deny: true },
      { name: 'users', match: { path: '/users' }, limits: [{ by: 'user', limit: '1/h' }] },
    ]
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules, dimensions })
    const denied = await ask(address, get('/closed'))
    expect(denied.status).toBe(403)
    expect(denied.field('content-type')).toBe('application/problem+json')
    const missing = await ask(address, get('/users'))
    expect(missing.status).toBe(400)
    expect(JSON.parse(missing.body.toString()).detail).toContain('user')
    expect(up.seen.length).toBe(0)
    expect((await ask(address, get('/users', ['X-User-Id: 7']))).status).toBe(200)
  })

  it('is answered 503 where the store is away and the rule says closed', async () => {
    const up = await TestUpstream.start()
    const rules = all('5/m').map((rule) => ({ ...rule, onStoreFailure: 'closed' }))
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules, store: 'redis://127.0.0.1:1' })
    const answer = await ask(address, get('/'))
    expect(answer.status).toBe(503)
    expect(answer.field('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(JSON.parse(answer.body.toString()).type).toBe(
      'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    )
    expect(up.seen.length).toBe(0)
  })
})

describe('a request without a route', () => {
  it('is answered 404 after the rules: scanning is not free (fastify/fastify-rate-limit#59)', async () => {
    const { address } = await TestGateway.start({ rules: all('2/h') })
    const statuses: number[] = []
    for (const path of ['/a', '/b', '/c']) statuses.push((await ask(address, get(path))).status)
    expect(statuses).toEqual([404, 404, 429])
  })

  it('counts like one that the upstream does not know (fastify/fastify-rate-limit#127)', async () => {
    const up = await TestUpstream.start((req, res) => res.writeHead(req.method === 'PUT' ? 405 : 404).end())
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('2/h') })
    expect((await ask(address, get('/nowhere'))).status).toBe(404)
    expect((await ask(address, get('/', ['Content-Length: 0'], 'PUT'))).status).toBe(405)
    expect((await ask(address, get('/nowhere'))).status).toBe(429)
  })
})

describe('methods', () => {
  const getOnly = [{ name: 'get', match: { path: '/*', method: ['GET'] }, limits: [{ by: 'ip', limit: '3/h' }] }]

  it('count a HEAD once, in the bucket of GET (fastify/fastify-rate-limit#131)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: getOnly })
    expect((await ask(address, get('/', [], 'HEAD'), { head: true })).field('ratelimit')).toContain('r=2')
    expect((await ask(address, get('/'))).field('ratelimit')).toContain('r=1')
  })

  it('do not charge a preflight, but do charge a bare OPTIONS (GIScience/openrouteservice#164)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('3/h') })
    const preflight = ['Origin: https://a.example', 'Access-Control-Request-Method: PUT']
    expect((await ask(address, get('/', preflight, 'OPTIONS'))).field('ratelimit')).toBeUndefined()
    expect((await ask(address, get('/', [], 'OPTIONS'))).field('ratelimit')).toContain('r=2')
  })
})

describe('a field that the upstream is not shown', () => {
  const dimensions = {
    user: { header: 'X-User-Id', missing: 'ip' },
    session: { cookie: 'sid', missing: 'ip' },
    told: { header: 'X-Forwarded-User', missing: 'ip' },
  }

  it.each([
    ['a header', 'user', 'Connection: X-User-Id', (i: number) => `X-User-Id: u${i}`],
    ['a header among others', 'user', 'Connection: close, x-USER-id', (i: number) => `x-user-ID: u${i}`],
    ['a cookie', 'session', 'Connection: keep-alive, Cookie', (i: number) => `Cookie: sid=s${i}`],
    ["a stranger's word about the caller", 'told', 'X-Other: 1', (i: number) => `X-Forwarded-User: u${i}`],
  ])('makes nobody somebody else: %s', async (_what, by, connection, field) => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('2/h', by), dimensions })
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await ask(address, get('/', [connection, field(i)]))).status)
    expect(statuses).toEqual([200, 200, 429, 429])
    for (const seen of up.seen) expect(seen.rawHeaders.join(' ')).not.toMatch(/u\d|sid=/)
  })

  it('neither opens a rule nor sets a cost', async () => {
    const up = await TestUpstream.start()
    const cost = { header: 'X-Cost', min: 2, max: 5, fromAnyone: true }
    const rules = [
      { name: 'vip', match: { path: '/vip', header: { 'X-Vip': '*' } }, allow: true },
      { name: 'rest', match: { path: '/*' }, cost, limits: [{ by: 'global', limit: '10/h' }], disclose: true },
    ]
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
    expect((await ask(address, get('/vip', ['X-Vip: 1']))).field('ratelimit')).toBeUndefined()
    expect((await ask(address, get('/vip', ['X-Vip: 1', 'Connection: X-Vip']))).field('ratelimit')).toContain('r=8')
    expect((await ask(address, get('/', ['X-Cost: 5', 'Connection: X-Cost']))).field('ratelimit')).toContain('r=6')
    expect((await ask(address, get('/', ['X-Cost: 5']))).field('ratelimit')).toContain('r=1')
  })

  it("still tells the caller's address, where a trusted proxy says it", async () => {
    const up = await TestUpstream.start()
    const gateway = { trustedProxies: ['127.0.0.0/8'] }
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('1/h'), gateway })
    const from = (ip: string) => get('/', [`X-Forwarded-For: ${ip}`, 'Connection: X-Forwarded-For'])
    expect((await ask(address, from('192.0.2.1'))).status).toBe(200)
    expect((await ask(address, from('192.0.2.1'))).status).toBe(429)
    expect((await ask(address, from('192.0.2.2'))).status).toBe(200)
  })
})
