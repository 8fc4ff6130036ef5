import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { BluntUpstream } from '../test-support/blunt-upstream.ts'
import { TestGateway } from '../test-support/gateway.ts'
import { ask, get, type RawAnswer, RawConnection } from '../test-support/raw-connection.ts'
import { TestUpstream } from '../test-support/upstream.ts'

const CONNECT = 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'

function expectProblem(answer: RawAnswer, status: number): void {
  expect(answer.status).toBe(status)
  expect(JSON.parse(answer.body.toString())).toMatchObject({ status })
}

describe('requests that come before the answers to earlier ones', () => {
  it('reach the upstream one after the other', async () => {
    const answers: ServerResponse[] = []
    const up = await TestUpstream.start((_req, res) => void answers.push(res))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write([1, 2, 3].map((i) => get(`/${i}`)).join(''))
    for (const i of [1, 2, 3]) {
      await expect.poll(() => answers.length).toBe(i)
      await sleep(30)
      expect(up.seen.length).toBe(i)
      answers[i - 1]?.end(`answer ${i}`)
      expect((await client.answer()).body.toString()).toBe(`answer ${i}`)
    }
  })

  it.each(['close', 'reset'] as const)('leave nothing at the upstream when their client goes by %s', async (leave) => {
    const up = await TestUpstream.start((req, res) => {
      if (req.url === '/big') res.end(Buffer.alloc(5_000_000))
      else setTimeout(() => res.end('late'), 150)
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    for (let i = 0; i < 10; i++) {
      const client = await RawConnection.open(address)
      client.write(get('/delay') + get('/big') + get('/big'))
      await expect.poll(() => up.open).toBe(1)
      client[leave]()
      await expect.poll(() => up.open, { timeout: 1000 }).toBe(0)
    }
    await sleep(300)
    expect(up.open).toBe(0)
    expect(up.seen.filter(({ target }) => target === '/big')).toEqual([])
  })

  it('are left unread when they are many, and answered all the same', async () => {
    let first: ServerResponse | undefined
    const up = await TestUpstream.start((req, res) => {
      if (req.url === '/first') first = res
      else res.end(req.url)
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write(get('/first'))
    await expect.poll(() => first).toBeDefined()
    const padding = [`X-Padding: ${'x'.repeat(4000)}`]
    const count = 3000
    for (let i = 0; i < count; i++) client.write(get(`/${i}`, padding))
    await sleep(500)
    // Kernels buffer a few megabytes; the rest is still with the client.
    expect(client.socket.writableLength).toBeGreaterThan(1_000_000)
    expect(up.seen.length).toBe(1)
    first?.end('first')
    expect((await client.answer()).body.toString()).toBe('first')
    for (let i = 0; i < count; i++) expect((await client.answer()).body.toString()).toBe(`/${i}`)
  })

  it('are left unread also while the answer before them streams', async () => {
    const up = await TestUpstream.start((req, res) => {
      if (req.url !== '/stream') return void res.end(req.url)
      const pour = (): void => {
        for (let i = 0; i < 4; i++) res.write(Buffer.alloc(65_536))
        if (!res.destroyed && up.seen.length === 1) setTimeout(pour, 2)
      }
      pour()
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write(get('/stream'))
    for (let i = 0; i < 3000; i++) client.write(get(`/${i}`, [`X-Padding: ${'x'.repeat(4000)}`]))
    await sleep(700)
    expect(client.socket.writableLength).toBeGreaterThan(1_000_000)
    expect(client.bytesReceived).toBeGreaterThan(1_000_000)
    expect(up.seen.length).toBe(1)
  })

  it('do not pass for ones whose client does not read, while they wait behind a slow one', async () => {
    const up = await TestUpstream.start((req, res) => {
      if (req.url === '/slow') setTimeout(() => res.end('slow'), 700)
      else res.end('fast')
    })
    const routes = [
      { path: '/slow', upstream: up.origin },
      { path: '/fast', upstream: up.origin, timeout: '200ms' },
    ]
    const { address } = await TestGateway.start({ routes })
    const client = await RawConnection.open(address)
    client.write(get('/slow') + get('/fast'))
    expect((await client.answer()).body.toString()).toBe('slow')
    expect((await client.answer()).body.toString()).toBe('fast')
  })

  it('may carry a body that is sent later, and an expectation', async () => {
    const up = await TestUpstream.start((req, res) => void setTimeout(() => req.pipe(res), 50))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    const post = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n'
    client.write(get('/') + post)
    expect((await client.answer()).status).toBe(200)
    expect((await client.answer()).status).toBe(100)
    client.write(`hello${get('/')}`)
    expect((await client.answer()).body.toString()).toBe('hello')
    expect((await client.answer()).status).toBe(200)
  })

  it('with a body that ends in garbage are answered 400 after the answers that are due', async () => {
    const up = await TestUpstream.start((_req, res) => void setTimeout(() => res.end('due'), 100))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write(`${get('/')}POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`)
    expect((await client.answer()).body.toString()).toBe('due')
    expectProblem(await client.answer(), 400)
    await client.closed()
    expect(up.seen.length).toBe(1)
  })

  it('behind one that ends the connection are not run', async () => {
    const up = await TestUpstream.start((_req, res) => void setTimeout(() => res.end('done'), 100))
    const gateway = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(gateway.address)
    client.write(get('/1') + get('/2'))
    await expect.poll(() => up.open).toBe(1)
    const drained = gateway.running.drain()
    expect((await client.answer()).field('connection')).toBe('close')
    expect((await client.closed()).length).toBe(0)
    await drained
    expect(up.seen.map(({ target }) => target)).toEqual(['/1'])
  })
})

describe('a CONNECT', () => {
  it('whose client leaves without reading the answer does not end the gateway', async () => {
    const up = await TestUpstream.start((_req, res) => void setTimeout(() => res.end(), 20))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    for (let i = 0; i < 60; i++) {
      const client = await RawConnection.open(address)
      client.write(`${i % 3 === 0 ? get('/') : ''}${CONNECT}${'x'.repeat(i * 100)}`)
      if (i % 2) await sleep(2)
      client.reset()
    }
    await sleep(200)
    expect((await ask(address, get('/'))).status).toBe(200)
  })

  it('is answered in its turn, also where the answer before it is long, and nothing behind it', async () => {
    const size = 20_000_000
    const up = await TestUpstream.start((_req, res) => {
      res.writeHead(200, { 'Content-Length': String(size) })
      setTimeout(() => res.end(Buffer.alloc(size)), 50)
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write(get('/1') + get('/2') + CONNECT + get('/never'))
    for (let i = 0; i < 2; i++) expect((await client.answer()).body.length).toBe(size)
    expectProblem(await client.answer(), 405)
    expect((await client.closed()).length).toBe(0)
    expect(up.seen.length).toBe(2)
  })
})

describe('sockets that break at any step', () => {
  it('do not end the gateway', async () => {
    const up = await BluntUpstream.start((socket, head) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no')
      setTimeout(() => (head.includes('/cut') ? socket.resetAndDestroy() : socket.write('k')), 5)
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const texts = [
      'GARBAGE\r\n\r\n',
      get('/cut'),
      get('/', ['Connection: Upgrade', 'Upgrade: websocket']),
      `${get('/')}GARBAGE\r\n\r\n`,
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc',
      'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n',
      'GET / HTTP/1.1\r\nHo',
    ]
    for (const text of texts) {
      for (const delayMs of [0, 1, 4, 8]) {
        const client = await RawConnection.open(address)
        client.write(text)
        if (delayMs > 0) await sleep(delayMs)
        client.reset()
      }
    }
    await sleep(100)
    expect((await ask(address, get('/'))).status).toBe(200)
  })
})
