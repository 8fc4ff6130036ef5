import { createHash, randomBytes } from 'node:crypto'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { TestGateway } from '../test-support/gateway.ts'
import { get, RawConnection } from '../test-support/raw-connection.ts'
import { slowStore } from '../test-support/slow-store.ts'
import { TestUpstream } from '../test-support/upstream.ts'

const MB = 1024 * 1024
const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex')

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes in use once all garbage is gone. */
function retained(): number {
  collect()
  const { external, heapUsed } = process.memoryUsage()
  return external + heapUsed
}

/** Answers with the digest of what it read and how that was framed. */
function digesting(req: IncomingMessage, res: ServerResponse): void {
  const hash = createHash('sha256')
  let bytes = 0
  req.on('data', (chunk: Buffer) => {
    hash.update(chunk)
    bytes += chunk.length
  })
  req.on('end', () => res.end(JSON.stringify({ sha256: hash.digest('hex'), bytes, headers: req.headers })))
}

interface Digest {
  sha256: string
  bytes: number
  headers: Record<string, string>
}

function send(
  address: string,
  method: string,
  headers: Record<string, string>,
  write: (req: ReturnType<typeof request>) => Promise<void> | void,
): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const req = request(address, { method, headers }, (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      res.on('end', () => resolve({ status: res.statusCode as number, body: Buffer.concat(chunks) }))
    })
    req.on('error', reject)
    void Promise.resolve(write(req)).then(() => req.end(), reject)
  })
}

async function digestOf(...args: Parameters<typeof send>): Promise<Digest> {
  const { status, body } = await send(...args)
  expect(status).toBe(200)
  return JSON.parse(body.toString()) as Digest
}

describe('a request body (chimurai/http-proxy-middleware#40)', () => {
  it('arrives as it was sent: 50 MB in chunks, with flat memory', async () => {
    const up = await TestUpstream.start(digesting)
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const piece = randomBytes(MB)
    const hash = createHash('sha256')
    const inUse: number[] = []
    const digest = await digestOf(address, 'POST', { 'Transfer-Encoding': 'chunked' }, async (req) => {
      for (let i = 0; i < 50; i++) {
        hash.update(piece)
        if (!req.write(piece)) await new Promise((resolve) => req.once('drain', resolve))
        if (i % 10 === 9) inUse.push(retained())
      }
    })
    expect(digest).toMatchObject({ bytes: 50 * MB, sha256: hash.digest('hex') })
    expect(digest.headers['transfer-encoding']).toBe('chunked')
    expect(Math.max(...inUse) - (inUse[0] as number)).toBeLessThan(20 * MB)
  })

  it('arrives as it was sent: JSON, gzip, multipart, empty', async () => {
    const up = await TestUpstream.start(digesting)
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const json = Buffer.from(JSON.stringify({ a: 1, ü: 'ö' }))
    const boundary = 'xyz'
    const multipart = Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="f"\r\n\r\n\0\xff\r\n--${boundary}--\r\n`,
      'latin1',
    )
    const bodies: [type: string, body: Buffer][] = [
      ['application/json', json],
      [`multipart/form-data; boundary=${boundary}`, multipart],
      ['application/gzip', gzipSync(json)],
    ]
    for (const [type, body] of bodies) {
      const headers = { 'Content-Type': type, 'Content-Length': String(body.length) }
      const digest = await digestOf(address, 'POST', headers, (req) => void req.write(body))
      expect(digest).toMatchObject({ bytes: body.length, sha256: sha256(body) })
      expect(digest.headers).toMatchObject({ 'content-type': type, 'content-length': String(body.length) })
    }
    for (const headers of [{ 'Transfer-Encoding': 'chunked' }, { 'Content-Length': '0' }] as Record<string, string>[]) {
      const digest = await digestOf(address, 'POST', headers, () => {})
      expect(digest.bytes).toBe(0)
      expect(digest.headers['content-length']).toBe('0')
    }
  })

  it('streams: the upstream has its first byte before the client sent the last', async () => {
    const seen: number[] = []
    const up = await TestUpstream.start((req, res) => {
      req.on('data', (chunk: Buffer) => seen.push(chunk.length)).on('end', () => res.end())
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    await send(address, 'POST', { 'Content-Length': '4' }, async (req) => {
      for (let i = 1; i <= 4; i++) {
        req.write('x')
        await expect.poll(() => seen.length).toBe(i)
      }
    })
    expect(seen).toEqual([1, 1, 1, 1])
  })

  it('waits with back-pressure for an upstream that reads slowly', async () => {
    let upstreamRequest: IncomingMessage | undefined
    const up = await TestUpstream.start((req, res) => {
      upstreamRequest = req
      req.on('end', () => res.end('done'))
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    const total = 30 * MB
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${total}\r\n\r\n`)
    client.write(Buffer.alloc(total))
    await expect.poll(() => upstreamRequest).toBeDefined()
    await sleep(300)
    // Nobody reads: what was taken from the client fits buffers.
    expect(client.socket.writableLength).toBeGreaterThan(total / 2)
    upstreamRequest?.resume()
    expect((await client.answer()).body.toString()).toBe('done')
  })

  it('loses nothing while the decision takes 500 ms (chimurai/http-proxy-middleware#177)', async () => {
    const up = await TestUpstream.start(digesting)
    const rules = [{ name: 'all', match: { path: '/*' }, limits: [{ by: 'ip', limit: '100/h' }] }]
    const { url, network } = await slowStore()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules, store: url, timeout: '5s' })
    await send(address, 'GET', {}, () => {})
    network.delay(250)
    const body = randomBytes(300_000)
    const headers = { 'Content-Length': String(body.length) }
    const began = performance.now()
    const digest = await digestOf(address, 'POST', headers, (req) => void req.write(body))
    expect(digest).toMatchObject({ bytes: body.length, sha256: sha256(body) })
    expect(performance.now() - began).toBeGreaterThan(450)
  })
})

describe('an answer body', () => {
  it('comes back as it was sent: 50 MB in chunks, gzip as it is', async () => {
    const piece = randomBytes(MB)
    const hash = createHash('sha256')
    for (let i = 0; i < 50; i++) hash.update(piece)
    const up = await TestUpstream.start((req, res) => {
      if (req.url === '/gzip') res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync('hello'))
      else Readable.from(Array(50).fill(piece)).pipe(res)
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const { body } = await send(address, 'GET', {}, () => {})
    expect(body.length).toBe(50 * MB)
    expect(sha256(body)).toBe(hash.digest('hex'))
    const zipped = await send(address, 'GET', {}, () => {})
    expect(zipped.status).toBe(200)
    const client = await RawConnection.open(address)
    client.write(get('/gzip', ['Accept-Encoding: gzip']))
    expect(gunzipSync((await client.answer()).body).toString()).toBe('hello')
  })

  it('waits with back-pressure for a client that reads slowly', async () => {
    const total = 30 * MB
    let upstreamAnswer: ServerResponse | undefined
    const up = await TestUpstream.start((_req, res) => {
      upstreamAnswer = res
      res.writeHead(200, { 'Content-Length': String(total) }).end(Buffer.alloc(total))
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.socket.pause()
    client.write(get('/'))
    await expect.poll(() => upstreamAnswer).toBeDefined()
    await sleep(300)
    expect(upstreamAnswer?.writableLength).toBeGreaterThan(total / 2)
    client.socket.resume()
    expect((await client.answer()).body.length).toBe(total)
  })

  it('streams: head and pieces arrive when they are sent', async () => {
    let answer: ServerResponse | undefined
    const up = await TestUpstream.start((_req, res) => {
      answer = res
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.flushHeaders()
    })
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    client.write(get('/'))
    await expect.poll(() => client.bytesReceived).toBeGreaterThan(0)
    for (const text of ['data: 1', 'data: 2']) {
      const before = client.bytesReceived
      answer?.write(`${text}\n\n`)
      await expect.poll(() => client.bytesReceived).toBeGreaterThan(before)
    }
    answer?.end()
    expect((await client.answer()).body.toString()).toBe('data: 1\n\ndata: 2\n\n')
  })
})

describe('Expect: 100-continue', () => {
  const ask = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n'

  it('is answered after the decision, when the upstream wants the body', async () => {
    const up = await TestUpstream.start(digesting)
    const rules = [{ name: 'all', match: { path: '/*' }, limits: [{ by: 'ip', limit: '1/h' }] }]
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
    const client = await RawConnection.open(address)
    client.write(ask)
    expect((await client.answer()).status).toBe(100)
    client.write('hello')
    const answer = await client.answer()
    expect(JSON.parse(answer.body.toString())).toMatchObject({ bytes: 5 })
    expect(up.last.values('expect')).toEqual([])

    client.write(ask)
    const refused = await client.answer()
    expect(refused.status).toBe(429)
    expect(refused.field('connection')).toBe('close')
    expect((await client.closed()).length).toBe(0)
  })

  it('is not answered where the upstream is away', async () => {
    const { address } = await TestGateway.start({ upstreams: ['http://127.0.0.1:1'] })
    const client = await RawConnection.open(address)
    client.write(ask)
    expect((await client.answer()).status).toBe(502)
  })
})

describe('a refused body', () => {
  it('is not read: the answer comes first, and the connection closes', async () => {
    const up = await TestUpstream.start()
    const rules = [{ name: 'all', match: { path: '/*' }, limits: [{ by: 'ip', limit: '0/s' }] }]
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
    const client = await RawConnection.open(address)
    const total = 30 * MB
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${total}\r\n\r\n`)
    client.write(Buffer.alloc(total))
    const answer = await client.answer()
    expect(answer.status).toBe(429)
    expect(answer.field('connection')).toBe('close')
    await client.closed()
    expect(client.socket.writableLength).toBeGreaterThan(total / 2)
    expect(up.seen.length).toBe(0)
  })

  it('that was there already leaves the connection as it is', async () => {
    const up = await TestUpstream.start()
    const rules = [{ name: 'all', match: { path: '/*' }, limits: [{ by: 'ip', limit: '0/s' }] }]
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules })
    const client = await RawConnection.open(address)
    for (let i = 0; i < 2; i++) {
      client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello')
      expect((await client.answer()).status).toBe(429)
    }
  })

  it('by the upstream reaches a client that is still sending', async () => {
    const up = await TestUpstream.start((_req, res) => res.writeHead(413).end('too large'))
    const { address } = await TestGateway.start({ upstreams: [up.origin] })
    const client = await RawConnection.open(address)
    const total = 30 * MB
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${total}\r\n\r\n`)
    client.write(Buffer.alloc(total))
    const answer = await client.answer()
    expect(answer.status).toBe(413)
    expect(answer.body.toString()).toBe('too large')
    await client.closed()
  })
})
