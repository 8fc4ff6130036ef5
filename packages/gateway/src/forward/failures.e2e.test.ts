import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { BluntUpstream, OK } from '../test-support/blunt-upstream.ts'
import { TestGateway } from '../test-support/gateway.ts'
import { ask, get, type RawAnswer, RawConnection } from '../test-support/raw-connection.ts'
import { slowStore } from '../test-support/slow-store.ts'
import { TestUpstream } from '../test-support/upstream.ts'

const rules = [{ name: 'all', match: { path: '/*' }, limits: [{ by: 'ip', limit: '100/h' }] }]
const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'
/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:1'

function expectProblem(answer: RawAnswer, status: number): void {
  expect(answer.status).toBe(status)
  expect(answer.field('content-type')).toBe('application/problem+json')
  expect(JSON.parse(answer.body.toString())).toMatchObject({ status })
}

/** How much the next request still finds. */
async function remaining(address: string): Promise<number> {
  return Number(/r=(\d+)/.exec((await ask(address, get('/count'))).field('ratelimit') ?? '')?.[1])
}

describe('an upstream that cannot be connected to', () => {
  it('is answered 502, once charged, and logged once', async () => {
    const gateway = await TestGateway.start({ upstreams: [NOWHERE], rules })
    expectProblem(await ask(gateway.address, get('/')), 502)
    expectProblem(await ask(gateway.address, POST), 502)
    expect((await ask(gateway.address, get('/'))).field('ratelimit')).toContain('r=97')
    expect(gateway.lines.filter(({ message }) => message === 'upstream fails').length).toBe(1)
  })

  it('gives way to the next one, also with a body, and once only', async () => {
    const up = await TestUpstream.start()
    const gateway = await TestGateway.start({ upstreams: [NOWHERE, up.origin], rules })
    for (let i = 0; i < 4; i++) expect((await ask(gateway.address, i % 2 ? POST : get('/'))).status).toBe(200)
    expect(up.seen.length).toBe(4)
    expect(await remaining(gateway.address)).toBe(95)
    const dead = await TestGateway.start({ upstreams: [NOWHERE, 'http://127.0.0.1:2', up.origin], rules })
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await ask(dead.address, get('/'))).status)
    expect(statuses.sort()).toEqual([200, 200, 502])
  })
})

describe('several upstreams', () => {
  it('take requests in turn', async () => {
    const ups = await Promise.all([1, 2, 3].map(() => TestUpstream.start()))
    const { address } = await TestGateway.start({ upstreams: ups.map((up) => up.origin) })
    for (let i = 0; i < 9; i++) await ask(address, get('/'))
    expect(ups.map((up) => up.seen.length)).toEqual([3, 3, 3])
  })
})

describe('an upstream that is late', () => {
  it('with the head is answered 504', async () => {
    const up = await TestUpstream.start(() => {})
    const { address } = await TestGateway.start({ upstreams: [up.origin], route: { timeout: '300ms' } })
    const began = performance.now()
    expectProblem(await ask(address, get('/')), 504)
    expect(performance.now() - began).toBeLessThan(1500)
    await expect.poll(() => up.open).toBe(0)
  })

  it('with the rest of the body is cut off, so that the client does not take it for whole', async () => {
    const up = await TestUpstream.start((_req, res) => {
      res.writeHead(200, { 'Content-Length': '10' })
      res.write('half')
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin], route: { timeout: '300ms' } })
    const client = await RawConnection.open(address)
    client.write(get('/'))
    await expect(client.answer()).rejects.toThrow('closed')
    await expect.poll(() => up.open).toBe(0)
  })
})

describe('a client that stops', () => {
  it('sending its body is answered 408 and loses its connection, and the upstream its request', async () => {
    const up = await TestUpstream.start()
    const gateway = await TestGateway.start({ upstreams: [up.origin], rules, route: { timeout: '300ms' } })
    const client = await RawConnection.open(gateway.address)
    client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nfirst')
    await expect.poll(() => up.open).toBe(1)
    const answer = await client.answer()
    expectProblem(answer, 408)
    expect(answer.field('connection')).toBe('close')
    expect(answer.field('ratelimit')).toContain('r=99')
    expect((await client.closed()).length).toBe(0)
    await expect.poll(() => up.open).toBe(0)
    expect(gateway.lines.filter(({ level }) => level !== 'info')).toEqual([])
  })

  it('sending its body, when the answer had begun, is cut, so that it does not take the answer for whole', async () => {
    const up = await TestUpstream.start((_req, res) => void res.write('half'))
    const { address } = await TestGateway.start({ upstreams: [up.origin], route: { timeout: '300ms' } })
    const client = await RawConnection.open(address)
    client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nfirst')
    await expect(client.answer()).rejects.toThrow('closed')
    await expect.poll(() => up.open).toBe(0)
  })

  it('reading its answer loses its connection, and the upstream its request', async () => {
    const up = await TestUpstream.start((_req, res) => res.end(Buffer.alloc(30_000_000)))
    const { address } = await TestGateway.start({ upstreams: [up.origin], route: { timeout: '300ms' } })
    const client = await RawConnection.open(address)
    client.socket.pause()
    client.write(get('/'))
    await expect.poll(() => up.seen.length).toBe(1)
    await expect.poll(() => up.open, { timeout: 3000 }).toBe(0)
  })
})

describe('a client that waits', () => {
  it('between its requests keeps its connection past the timeout of the route', async () => {
    const up = await TestUpstream.start((_req, res) => res.end(Buffer.alloc(5_000_000)))
    const { address } = await TestGateway.start({ upstreams: [up.origin], route: { timeout: '300ms' } })
    const client = await RawConnection.open(address)
    for (let i = 0; i < 2; i++) {
      client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello')
      expect((await client.answer()).body.length).toBe(5_000_000)
      await sleep(600)
    }
  })
})

describe('an upstream that answers nonsense', () => {
  it('is answered 502, whatever it is', async () => {
    const nonsense = [
      'HELLO\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      'HTTP/1.1 200 OK\r\nX: \x01\r\n\r\n',
      'HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 2\r\n\r\nok',
      '',
    ]
    for (const text of nonsense) {
      const up = await BluntUpstream.start((socket) => socket.end(text))
      const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
      expectProblem(await ask(address, get('/')), 502)
      expect(up.heads.length).toBe(1)
    }
  })

  it('loses its connection with the client in the middle of a body', async () => {
    const up = await BluntUpstream.start((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    await expect(ask(address, get('/'))).rejects.toThrow('closed')
  })
})

describe('a kept connection that the upstream closed (sagemathinc/http-proxy-3#5)', () => {
  /** Answers the first request on each connection, closes on the second without a word. */
  async function forgetful(): Promise<BluntUpstream> {
    const served = new WeakSet<object>()
    return BluntUpstream.start((socket) => {
      if (served.has(socket)) socket.destroy()
      else socket.write(OK)
      served.add(socket)
    })
  }

  it('gives no 502 for a GET: it is sent once more, on a fresh connection, and charged once', async () => {
    const up = await forgetful()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
    for (let i = 0; i < 4; i++) expect((await ask(address, get('/'))).status).toBe(200)
    expect(await remaining(address)).toBe(95)
  })

  it('never sends a POST twice', async () => {
    const up = await forgetful()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
    const post = 'POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'
    expect((await ask(address, get('/'))).status).toBe(200)
    expectProblem(await ask(address, post), 502)
    expect(up.heads.filter((head) => head.startsWith('POST')).length).toBe(1)
    expect(await remaining(address)).toBe(97)
  })

  it('does not send a GET twice where an answer had begun', async () => {
    let count = 0
    const up = await BluntUpstream.start((socket) => {
      count += 1
      if (count === 1) socket.write(OK)
      else socket.end('HTTP/1.1 200 OK\r\nContent-')
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    expect((await ask(address, get('/'))).status).toBe(200)
    expectProblem(await ask(address, get('/')), 502)
    expect(up.heads.length).toBe(2)
  })

  it('is noticed before the next request is sent, whatever its method', async () => {
    const up = await BluntUpstream.start((socket) => socket.write(OK))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    for (let i = 0; i < 5; i++) {
      expect((await ask(address, POST)).status).toBe(200)
      for (const socket of up.sockets) {
        if (i % 2) socket.resetAndDestroy()
        else socket.end()
      }
      await sleep(20)
    }
    expect(up.heads.length).toBe(5)
  })

  it('at its idle limit costs no GET (cnighswonger/claude-code-cache-fix PR#371)', async () => {
    const up = await TestUpstream.start()
    up.server.keepAliveTimeout = 60
    // Node adds a second to what it announces, in which most requests would be safe: take it away.
    up.server.on('request', (req) => req.socket.setTimeout(60, () => req.socket.destroy()))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    for (let i = 0; i < 60; i++) {
      client.write(get('/'))
      expect((await client.answer()).status).toBe(200)
      await sleep(55 + (i % 10))
    }
  })
})

describe.each(['reset', 'close'] as const)(
  'a client that goes away by %s (http-party/node-http-proxy PR#158)',
  (leave) => {
    it('while the decision is pending: charged once, nothing forwarded', async () => {
      const up = await TestUpstream.start()
      const { url, network } = await slowStore()
      const gateway = await TestGateway.start({ upstreams: [up.origin], rules, store: url, timeout: '5s' })
      const { address } = gateway
      expect(await remaining(address)).toBe(99)
      network.delay(100)
      const client = await RawConnection.open(address)
      client.write(get('/'))
      await sleep(50)
      client[leave]()
      await sleep(300)
      network.delay(0)
      expect(up.seen.length).toBe(1)
      expect(await remaining(address)).toBe(97)
      expect(gateway.lines.filter(({ level }) => level === 'error')).toEqual([])
    })

    it('before the upstream is connected: nothing is sent', async () => {
      const up = await TestUpstream.start()
      const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
      const client = await RawConnection.open(address)
      client.write(get('/gone'))
      client[leave]()
      await sleep(100)
      expect(up.open).toBe(0)
      expect((await ask(address, get('/'))).status).toBe(200)
    })

    it('while it uploads: the upstream request ends within a second, charged once', async () => {
      const up = await TestUpstream.start()
      const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
      const client = await RawConnection.open(address)
      client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome')
      await expect.poll(() => up.open).toBe(1)
      client[leave]()
      await expect.poll(() => up.open, { timeout: 1000 }).toBe(0)
      expect(await remaining(address)).toBe(98)
    })

    it('while it waits for the head, or in the middle of the answer: the same', async () => {
      const up = await TestUpstream.start((req, res) => {
        if (req.url === '/half') res.write('half')
        else if (req.url === '/count') res.end()
      })
      const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
      for (const target of ['/half', '/never']) {
        const client = await RawConnection.open(address)
        client.write(get(target))
        await expect.poll(() => up.open).toBe(1)
        if (target === '/half') await expect.poll(() => client.bytesReceived).toBeGreaterThan(0)
        client[leave]()
        await expect.poll(() => up.open, { timeout: 1000 }).toBe(0)
      }
      expect(await remaining(address)).toBe(97)
    })

    it('while it does not read its answer: the same', async () => {
      const up = await TestUpstream.start((_req, res) => res.end(Buffer.alloc(30_000_000)))
      const { address } = await TestGateway.start({ upstreams: [up.origin] })
      const client = await RawConnection.open(address)
      client.socket.pause()
      client.write(get('/'))
      await expect.poll(() => up.open).toBe(1)
      await sleep(100)
      client[leave]()
      await expect.poll(() => up.open, { timeout: 1000 }).toBe(0)
    })
  },
)
