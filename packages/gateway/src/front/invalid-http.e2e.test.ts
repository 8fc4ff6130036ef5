import { describe, expect, it } from 'vitest'
import { TestGateway } from '../test-support/gateway.ts'
import { ask, get, type RawAnswer, RawConnection } from '../test-support/raw-connection.ts'
import { TestUpstream } from '../test-support/upstream.ts'

const rules = [{ name: 'all', match: { path: '/*' }, limits: [{ by: 'ip', limit: '1000/h' }] }]

async function start(): Promise<{ up: TestUpstream; address: string }> {
  const up = await TestUpstream.start()
  const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
  return { up, address }
}

function expectProblem(answer: RawAnswer, status: number): void {
  expect(answer.status).toBe(status)
  expect(answer.field('content-type')).toBe('application/problem+json')
  expect(JSON.parse(answer.body.toString())).toMatchObject({ status })
}

const post = (fields: string[], body: string) => `POST / HTTP/1.1\r\nHost: a\r\n${fields.join('\r\n')}\r\n\r\n${body}`

describe('what two servers could read in two ways', () => {
  const requests: [what: string, request: string][] = [
    ['a length and chunks', post(['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n')],
    ['chunks and a length', post(['Transfer-Encoding: chunked', 'Content-Length: 5'], '0\r\n\r\n')],
    ['two lengths', post(['Content-Length: 5', 'Content-Length: 6'], 'hello!')],
    ['one length twice', post(['Content-Length: 5', 'Content-Length: 5'], 'hello')],
    ['a list of lengths', post(['Content-Length: 5, 5'], 'hello')],
    ['a length with a sign', post(['Content-Length: +5'], 'hello')],
    ['a negative length', post(['Content-Length: -5'], 'hello')],
    ['a length in hex', post(['Content-Length: 0x5'], 'hello')],
    ['an empty length', post(['Content-Length:'], 'hello')],
    ['an unknown coding', post(['Transfer-Encoding: xchunked'], '0\r\n\r\n')],
    ['a coding after chunked', post(['Transfer-Encoding: chunked, identity'], '0\r\n\r\n')],
    ['a coding in quotes', post(['Transfer-Encoding: "chunked"'], '0\r\n\r\n')],
    ['chunked twice', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], '0\r\n\r\n')],
    ['a coding before chunked', post(['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n')],
    [
      'a coding before chunked on a line of its own',
      post(['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    ],
    ['chunked, said twice', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n')],
    ['a list with nothing before chunked', post(['Transfer-Encoding: , chunked'], '0\r\n\r\n')],
    ['an empty coding', post(['Transfer-Encoding:'], '')],
    ['an empty coding and a length', post(['Transfer-Encoding:', 'Content-Length: 5'], 'hello')],
    ['a space before the colon', post(['Transfer-Encoding : chunked'], '0\r\n\r\n')],
    ['a folded line', post(['X-A: 1', ' 2', 'Content-Length: 0'], '')],
    ['a folded coding', post(['Transfer-Encoding:', ' chunked'], '0\r\n\r\n')],
    ['lines that end in a bare LF', 'GET / HTTP/1.1\nHost: a\n\n'],
    ['one line that ends in a bare LF', 'GET / HTTP/1.1\r\nHost: a\nX-A: 1\r\n\r\n'],
    ['a head that ends in a bare LF', 'GET / HTTP/1.1\r\nHost: a\r\n\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a bare CR in a value', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\rX-B: 2\r\n\r\n'],
    ['a NUL in a value', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\0\r\n\r\n'],
    ['a space in the target', 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
    ['one Host twice', 'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n'],
    ['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
    ['a Host with a path', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n'],
    ['a Host with credentials', 'GET / HTTP/1.1\r\nHost: u@a\r\n\r\n'],
    ['a target with credentials', 'GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a target with bytes beyond ASCII', 'GET /caf\u00c3\u00a9 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a target that is no path', 'GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a target of another scheme', 'GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['the whole server as the target', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['an unknown method', 'HACK / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a method in lower case', 'get / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['no version', 'GET /\r\n\r\n'],
    ['no HTTP at all', '\x16\x03\x01\x02\x00\x01\x00'],
  ]
  it.each(requests)(
    'is answered 400 and not forwarded: %s (http-party/node-http-proxy#1720)',
    async (_what, request) => {
      const { up, address } = await start()
      const client = await RawConnection.open(address)
      client.write(request)
      expectProblem(await client.answer(), 400)
      expect(up.seen.length).toBe(0)
    },
  )

  it('is answered in words for other trouble too', async () => {
    const { up, address } = await start()
    expectProblem(await ask(address, get('/', [`X-Large: ${'x'.repeat(20_000)}`])), 431)
    expectProblem(await ask(address, get('/', ['Expect: the-unexpected'])), 417)
    expectProblem(await ask(address, 'GET / HTTP/2.0\r\nHost: a\r\n\r\n'), 505)
    expectProblem(await ask(address, get('/', [], 'TRACE')), 405)
    expectProblem(await ask(address, 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'), 405)
    expect(up.seen.length).toBe(0)
  })
})

describe('a coding other than chunked', () => {
  it('ends the connection, since what follows may be taken for something else', async () => {
    const { up, address } = await start()
    const client = await RawConnection.open(address)
    client.write(post(['Transfer-Encoding: gzip, chunked'], `0\r\n\r\n${get('/behind')}`))
    const answer = await client.answer()
    expectProblem(answer, 400)
    expect(answer.field('connection')).toBe('close')
    expect((await client.closed()).length).toBe(0)
    expect(up.seen.length).toBe(0)
  })

  it('does not mean chunked in other letters', async () => {
    const { up, address } = await start()
    const client = await RawConnection.open(address)
    client.write(post(['Transfer-Encoding: Chunked'], '2\r\nok\r\n0\r\n\r\n'))
    expect((await client.answer()).status).toBe(200)
    expect(up.last.values('transfer-encoding')).toEqual(['chunked'])
  })
})

describe('a request behind another one on a connection', () => {
  it('cannot hide in a body of DELETE, OPTIONS or GET (http-party/node-http-proxy#1721)', async () => {
    for (const method of ['DELETE', 'OPTIONS', 'GET', 'POST']) {
      const { up, address } = await start()
      const bodies: string[] = []
      up.answering = (req, res) => {
        let body = ''
        req.on('data', (chunk) => {
          body += chunk
        })
        req.on('end', () => {
          bodies.push(body)
          res.end()
        })
      }
      const hidden = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n'
      const client = await RawConnection.open(address)
      client.write(`${method} /open HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`)
      client.write(`${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`)
      expect((await client.answer()).field('ratelimit')).toContain('r=999')
      client.write(get('/next'))
      expect((await client.answer()).field('ratelimit')).toContain('r=998')
      expect(up.seen.map((seen) => seen.target)).toEqual(['/open', '/next'])
      expect(bodies).toEqual([hidden, ''])
    }
  })

  it('is judged and forwarded once each, in order, however the pieces arrive', async () => {
    const { up, address } = await start()
    const client = await RawConnection.open(address)
    const bytes = Buffer.from(`${get('/1')}${post(['Content-Length: 3'], 'abc')}${get('/3')}`)
    for (let i = 0; i < bytes.length; i += 7) {
      client.write(bytes.subarray(i, i + 7))
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (const body of ['GET /1', 'POST /', 'GET /3']) expect((await client.answer()).body.toString()).toBe(body)
    expect(up.seen.length).toBe(3)
  })

  it('is refused after the answers that are due, when it is no HTTP', async () => {
    const { up, address } = await start()
    const client = await RawConnection.open(address)
    client.write(`${get('/slow')}GARBAGE\r\n\r\n${get('/never')}`)
    expect((await client.answer()).body.toString()).toBe('GET /slow')
    expectProblem(await client.answer(), 400)
    await client.closed()
    expect(up.seen.map((seen) => seen.target)).toEqual(['/slow'])
  })

  it('is not answered when the one before said it was the last', async () => {
    const { up, address } = await start()
    const client = await RawConnection.open(address)
    client.write(`${get('/last', ['Connection: close'])}${get('/after')}`)
    expect((await client.answer()).body.toString()).toBe('GET /last')
    expect((await client.closed()).length).toBe(0)
    expect(up.seen.length).toBe(1)
  })

  it('does not exist where a body ends in garbage: the request is given up', async () => {
    const { up, address } = await start()
    const ended = new Promise<void>((resolve) => {
      up.answering = (req) => req.on('close', resolve).resume()
    })
    const client = await RawConnection.open(address)
    client.write(post(['Transfer-Encoding: chunked'], '3\r\nabc\r\n'))
    await expect.poll(() => up.seen.length).toBe(1)
    client.write('zz\r\n')
    expectProblem(await client.answer(), 400)
    await ended
    await client.closed()
  })
})

describe('the path', () => {
  const login = [{ name: 'login', match: { path: '/login' }, limits: [{ by: 'ip', limit: '3/h' }] }]
  const spellings = ['/login?x=1', '/login/', '//login', '/./login', '/a/../login', '/%6Cogin', '/LOGIN', '/login%2F']
  const more = [
    '/login;a=b',
    'http://host/login',
    '/login#x',
    '/%256Cogin',
    '/login%00',
    '/a/%2e%2e/login',
    '/x\\..\\login',
  ]

  it('spelled otherwise meets the same bucket or 400, and what was matched is forwarded (coder/coder PR#27273)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: login })
    for (const target of ['/login', '/login', '/login']) expect((await ask(address, get(target))).status).toBe(200)
    const statuses: Record<string, number> = {}
    for (const target of [...spellings, ...more]) statuses[target] = (await ask(address, get(target))).status
    for (const [target, status] of Object.entries(statuses)) expect([429, 400], target).toContain(status)
    expect(statuses['/%6Cogin']).toBe(429)
    expect(statuses['http://host/login']).toBe(429)
    expect(statuses['/%256Cogin']).toBe(400)
    expect(up.seen.length).toBe(3)
  })

  it('is forwarded as it was matched (parse-community/parse-server PR#10501)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const targets = [
      '//a/./b/../c?x=//',
      '/%61%2d%7e',
      '/A/b/',
      'http://other.example:81/x?y',
      'http://other.example',
      '/caf%c3%a9',
    ]
    for (const target of targets) expect((await ask(address, get(target))).status, target).toBe(200)
    expect(up.seen.map((seen) => seen.target)).toEqual(['/a/c?x=//', '/a-~', '/A/b/', '/x?y', '/', '/caf%C3%A9'])
    expect(up.seen[3]?.values('host')).toEqual(['other.example:81'])
  })
})
