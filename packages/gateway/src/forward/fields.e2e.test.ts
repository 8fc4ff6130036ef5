import { describe, expect, it } from 'vitest'
import { BluntUpstream } from '../test-support/blunt-upstream.ts'
import { TestGateway } from '../test-support/gateway.ts'
import { ask, get, RawConnection } from '../test-support/raw-connection.ts'
import { TestUpstream } from '../test-support/upstream.ts'

describe('fields of a request', () => {
  it('lose what is between the client and the gateway, and what Connection names', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const hop = [
      'Connection: close, X-Secret-Hop',
      'X-Secret-Hop: 1',
      'Keep-Alive: timeout=9',
      'TE: trailers',
      'Trailer: X-End',
    ]
    const proxy = [
      'Proxy-Authorization: Basic x',
      'Proxy-Connection: keep-alive',
      'Proxy: http://evil.example',
      'X-Stays: 1',
    ]
    await ask(address, get('/', [...hop, ...proxy]))
    const names = up.last.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
    expect(names.sort()).toEqual(
      ['connection', 'forwarded', 'host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-stays'].sort(),
    )
    expect(up.last.values('connection')).toEqual(['keep-alive'])
  })

  it('travel on as they came: order, case, repeats, bytes beyond ASCII', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    await ask(address, get('/', ['X-One: 1', 'x-TWO: caf\u00e9', 'X-One: again', 'Cookie: a=1', 'Cookie: b=2']))
    // Host and Connection come first.
    expect(up.last.rawHeaders.slice(4, 14)).toEqual([
      'X-One',
      '1',
      'x-TWO',
      'caf\u00e9',
      'X-One',
      'again',
      'Cookie',
      'a=1',
      'Cookie',
      'b=2',
    ])
  })

  it("replace what a stranger says about the caller's address", async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const lies = [
      'X-Forwarded-For: 1.1.1.1',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Host: bank.example',
      'Forwarded: for=1.1.1.1',
    ]
    await ask(address, get('/', [...lies, 'X-Forwarded-Port: 443', 'X-Forwarded-For: 2.2.2.2']))
    expect(up.last.values('x-forwarded-for')).toEqual(['127.0.0.1'])
    expect(up.last.values('x-forwarded-proto')).toEqual(['http'])
    expect(up.last.values('x-forwarded-host')).toEqual(['shop.example'])
    expect(up.last.values('forwarded')).toEqual(['for=127.0.0.1;host=shop.example;proto=http'])
    expect(up.last.values('x-forwarded-port')).toEqual([])
  })

  it('extend what a trusted proxy says', async () => {
    const up = await TestUpstream.start()
    const gateway = { trustedProxies: ['127.0.0.0/8'] }
    const { address } = await TestGateway.start({ upstreams: [up.origin], gateway })
    const told = [
      'X-Forwarded-For: 9.9.9.9',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Host: bank.example',
      'Forwarded: for=9.9.9.9',
    ]
    await ask(address, get('/', [...told, 'X-Forwarded-Port: 443', 'X-Forwarded-For: 8.8.8.8']))
    expect(up.last.values('x-forwarded-for')).toEqual(['9.9.9.9, 8.8.8.8, 127.0.0.1'])
    expect(up.last.values('x-forwarded-proto')).toEqual(['https'])
    expect(up.last.values('x-forwarded-host')).toEqual(['bank.example'])
    expect(up.last.values('forwarded')).toEqual(['for=9.9.9.9, for=127.0.0.1;host=shop.example;proto=http'])
    expect(up.last.values('x-forwarded-port')).toEqual(['443'])
  })

  it('name the host with its port in quotes, and follow the Host of each request on a connection', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    for (const host of ['a.example:8080', 'b.example', '[::1]:9']) {
      client.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      await client.answer()
    }
    expect(up.seen.map((seen) => seen.values('forwarded')[0])).toEqual([
      'for=127.0.0.1;host="a.example:8080";proto=http',
      'for=127.0.0.1;host=b.example;proto=http',
      'for=127.0.0.1;host="[::1]:9";proto=http',
    ])
    expect(up.seen.map((seen) => seen.values('host')[0])).toEqual(['a.example:8080', 'b.example', '[::1]:9'])
  })

  it("name the upstream's own host where the route says so", async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], route: { host: 'upstream' } })
    await ask(address, get('/'))
    expect(up.last.values('host')).toEqual([new URL(up.origin).host])
    expect(up.last.values('x-forwarded-host')).toEqual(['shop.example'])
  })
})

describe('targets', () => {
  it('lose the prefix of the route where it says so', async () => {
    const up = await TestUpstream.start()
    const routes = [{ path: '/api/v1/*', upstream: up.origin, stripPrefix: true }]
    const { address } = await TestGateway.start({ routes })
    const targets = ['/api/v1/things/7/?x=1', '/api/v1', '/api/v1/', '/API/V1?y=2', '//api/./v1//Z']
    for (const target of targets) await ask(address, get(target))
    expect(up.seen.map((seen) => seen.target)).toEqual(['/things/7/?x=1', '/', '/', '/?y=2', '/Z'])
  })
})

describe('fields of an answer', () => {
  it('lose what is between the gateway and the upstream, and what Connection names', async () => {
    const up = await TestUpstream.start((_req, res) =>
      res
        .writeHead(200, {
          Connection: 'X-Hop',
          'X-Hop': '1',
          'Keep-Alive': 'timeout=1',
          'Proxy-Authenticate': 'Basic',
          Upgrade: 'h2c',
          'X-Stays': '1',
        })
        .end('x'),
    )
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const answer = await ask(address, get('/'))
    for (const name of ['x-hop', 'proxy-authenticate', 'upgrade']) expect(answer.field(name)).toBeUndefined()
    expect(answer.field('keep-alive')).not.toBe('timeout=1')
    expect(answer.field('x-stays')).toBe('1')
  })

  it('travel back as they came: repeats, reason, bytes beyond ASCII', async () => {
    const up = await TestUpstream.start((_req, res) => {
      const name = Buffer.from('attachment; filename="é.txt"').toString('latin1')
      res.writeHead(299, 'Quite Fine', [
        'Set-Cookie',
        'a=1',
        'Set-Cookie',
        'b=2',
        'Content-Length',
        '2',
        'Content-Disposition',
        name,
      ])
      res.end('ok')
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write(get('/', ['Connection: close']))
    const text = (await client.closed()).toString()
    expect(text).toMatch(/^HTTP\/1\.1 299 Quite Fine\r\n/)
    expect(text.match(/Set-Cookie: .=./g)).toEqual(['Set-Cookie: a=1', 'Set-Cookie: b=2'])
    expect(text).toContain('filename="é.txt"')
  })

  it('of answers without a body stay complete: HEAD, 204, 304', async () => {
    const up = await TestUpstream.start((req, res) => {
      if (req.method === 'HEAD') res.writeHead(200, { 'Content-Length': '1234' }).end()
      else if (req.url === '/204') res.writeHead(204).end()
      else res.writeHead(304, { ETag: '"x"' }).end()
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write(get('/', [], 'HEAD') + get('/204') + get('/304'))
    expect((await client.answer({ head: true })).field('content-length')).toBe('1234')
    const noContent = await client.answer()
    expect(noContent.status).toBe(204)
    expect(noContent.field('transfer-encoding')).toBeUndefined()
    expect((await client.answer()).field('etag')).toBe('"x"')
  })

  it('whose reason cannot be written as it came have the usual one, or none', async () => {
    const sent = ['200 \xe9t\xe9', '200 \xe6\x97\xa5', '404 N\x01t', '299 \xe9', '200 ', '299 Quite Fine', '200']
    const up = await BluntUpstream.start((socket, _head, count) =>
      socket.write(`HTTP/1.1 ${sent[count - 1]}\r\nContent-Length: 2\r\n\r\nok`, 'latin1'),
    )
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const lines: string[] = []
    for (const _ of sent) {
      const client = await RawConnection.open(address)
      client.write(get('/', ['Connection: close']))
      const text = (await client.closed()).toString('latin1')
      expect(text).toMatch(/\r\n\r\nok$/)
      lines.push(text.slice('HTTP/1.1 '.length, text.indexOf('\r')))
    }
    expect(lines).toEqual(['200 OK', '200 OK', '404 Not Found', '299 ', '200 ', '299 Quite Fine', '200 '])
  })

  it('of answers without a body may tell the length of another one: HEAD, 304, 204', async () => {
    const up = await BluntUpstream.start((socket, head) => {
      const status = /^\w+ .(\d+)/.exec(head)?.[1]
      socket.write(`HTTP/1.1 ${status} X\r\nETag: "x"\r\nContent-Length: 1234\r\n\r\n`)
    })
    const gateway = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(gateway.address)
    for (const method of ['GET', 'HEAD', 'POST']) {
      for (const status of method === 'HEAD' ? [200, 204, 304] : [204, 304]) {
        client.write(get(`/${status}`, ['If-None-Match: "x"'], method))
        const answer = await client.answer({ head: method === 'HEAD' })
        expect(answer.status).toBe(status)
        expect(answer.field('etag')).toBe('"x"')
        // A 204 must not have any.
        expect(answer.field('content-length')).toBe(status === 204 ? undefined : '1234')
        expect(answer.field('connection')).not.toBe('close')
      }
    }
    expect(gateway.lines.filter(({ level }) => level !== 'info')).toEqual([])
  })

  it('fit a client of HTTP/1.0: no chunks, the end of the connection ends the body', async () => {
    const up = await TestUpstream.start((_req, res) => {
      res.write('a')
      setTimeout(() => res.end('b'), 20)
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write('GET / HTTP/1.0\r\n\r\n')
    const answer = await client.answer()
    expect(answer.field('transfer-encoding')).toBeUndefined()
    expect(answer.body.toString()).toBe('ab')
    expect(up.last.values('host')).toEqual([new URL(up.origin).host])
  })
})
