import { mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TestGateway, testFile } from '../test-support/gateway.ts'
import { ask, get, RawConnection } from '../test-support/raw-connection.ts'
import { TestUpstream } from '../test-support/upstream.ts'

const all = (limit: string, by = 'ip') => [{ name: 'all', match: { path: '/*' }, limits: [{ by, limit }] }]

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'headgate-'))
  onTestFinished(() => rm(path, { recursive: true }))
  return path
}

describe('an Upgrade', () => {
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']

  it('is judged, and forwarded as the plain request that it also is (rhinobase/hono-rate-limiter#17)', async () => {
    const up = await TestUpstream.start((_req, res) => res.writeHead(426, { Upgrade: 'websocket' }).end())
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('3/h') })
    for (let i = 0; i < 3; i++) {
      const answer = await ask(address, get('/ws', upgrade))
      expect(answer.status).toBe(426)
      expect(answer.field('upgrade')).toBeUndefined()
    }
    expect(up.last.values('upgrade')).toEqual([])
    expect(up.last.values('connection')).toEqual(['keep-alive'])
    const client = await RawConnection.open(address)
    client.write(get('/ws', [...upgrade, 'Connection: close']))
    expect((await client.closed()).toString('latin1')).toMatch(/^HTTP\/1\.1 429 /)
  })

  it('to nonsense does not pass the limit by (acouvreur/traefik-modsecurity-plugin#6)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('3/h') })
    const statuses: number[] = []
    for (let i = 0; i < 10; i++) {
      statuses.push((await ask(address, get('/login', ['Connection: Upgrade', 'Upgrade: nonsense']))).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 429, 429, 429])
    expect(up.seen.length).toBe(3)
  })

  it('of an upstream that nobody asked for is no answer', async () => {
    const blunt = createServer((socket) =>
      socket.end('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    )
    await new Promise<void>((resolve) => blunt.listen(0, '127.0.0.1', resolve))
    const { port } = blunt.address() as { port: number }
    const { address } = await TestGateway.start({ upstreams: [`http://127.0.0.1:${port}`] })
    expect((await ask(address, get('/'))).status).toBe(502)
    blunt.close()
  })
})

describe('the caller', () => {
  const from = (list: string) => get('/', [`X-Forwarded-For: ${list}`])

  it('is the peer, whatever a stranger writes into X-Forwarded-For (everruns/everruns#2643)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('2/h') })
    const statuses: number[] = []
    for (const lie of ['1.1.1.1', '2.2.2.2', '3.3.3.3']) statuses.push((await ask(address, from(lie))).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  it('is what the nearest trusted proxy appended (pierreb-devkit/Node#3933)', async () => {
    const up = await TestUpstream.start()
    const gateway = { trustedProxies: ['127.0.0.1/32'] }
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('2/h'), gateway })
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push((await ask(address, from(`10.9.8.${i}, 203.0.113.9`))).status)
    expect(statuses).toEqual([200, 200, 429])
    expect((await ask(address, from('203.0.113.9, 203.0.113.10'))).status).toBe(200)
  })

  it('counts as its /64 when it has IPv6 (express-rate-limit/express-rate-limit#502)', async () => {
    const up = await TestUpstream.start()
    const { address } = await TestGateway.start({
      upstreams: [up.origin],
      rules: all('5/h'),
      gateway: { trustedHops: 1 },
    })
    const statuses: number[] = []
    for (let i = 1; i <= 6; i++) statuses.push((await ask(address, from(`2001:db8:1:2::${i}`))).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    expect((await ask(address, from('2001:db8:1:3::1'))).status).toBe(200)
  })

  it('on a unix socket is trusted, and counts as unix without a word about who it is', async () => {
    const up = await TestUpstream.start()
    const listen = `unix:${join(await folder(), 'gate.sock')}`
    const { address } = await TestGateway.start({ upstreams: [up.origin], rules: all('1/h'), gateway: { listen } })
    expect(address).toBe(listen)
    expect((await ask(address, get('/'))).status).toBe(200)
    expect(up.last.values('x-forwarded-for')).toEqual([])
    expect(up.last.values('forwarded')).toEqual(['for=_unix;host=shop.example;proto=http'])
    expect((await ask(address, get('/'))).status).toBe(429)
    expect((await ask(address, from('192.0.2.1'))).status).toBe(200)
    expect(up.last.values('x-forwarded-for')).toEqual(['192.0.2.1'])
  })
})

describe('the listen address', () => {
  it('that is taken is named, with what to do', async () => {
    const first = await TestGateway.start({})
    const { port } = new URL(first.address)
    await expect(TestGateway.start({ gateway: { listen: `127.0.0.1:${port}` } })).rejects.toMatchObject({
      code: 'HEADGATE_LISTEN',
      message: `gateway: cannot listen on 127.0.0.1:${port}: another process listens there; stop it or change the address (EADDRINUSE)`,
    })
  })

  it('may be all addresses, or one of IPv6', async () => {
    const up = await TestUpstream.start()
    const any = await TestGateway.start({ upstreams: [up.origin], gateway: { listen: ':0' } })
    const { port } = new URL(any.address)
    expect((await ask(`http://127.0.0.1:${port}`, get('/'))).status).toBe(200)
    expect(up.last.values('x-forwarded-for')).toEqual(['127.0.0.1'])
    expect((await ask(`http://[::1]:${port}`, get('/'))).status).toBe(200)
    expect(up.last.values('forwarded')).toEqual(['for="[::1]";host=shop.example;proto=http'])
  })

  it('replaces a socket file that a dead process left, but not one in use, nor a file', async () => {
    const path = join(await folder(), 'gate.sock')
    const listen = `unix:${path}`
    // A server that is closed takes its file along; one whose file was renamed away does not.
    const dead = createServer()
    await new Promise<void>((resolve) => dead.listen(`${path}.0`, resolve))
    await rename(`${path}.0`, path)
    await new Promise((resolve) => dead.close(resolve))
    expect((await stat(path)).isSocket()).toBe(true)
    const first = await TestGateway.start({ gateway: { listen } })
    expect((await ask(first.address, get('/'))).status).toBe(404)
    await expect(TestGateway.start({ gateway: { listen } })).rejects.toMatchObject({ code: 'HEADGATE_LISTEN' })
    await first.close()
    await expect(stat(path)).rejects.toThrow('ENOENT')
    await writeFile(path, 'precious')
    await expect(TestGateway.start({ gateway: { listen } })).rejects.toMatchObject({ code: 'HEADGATE_LISTEN' })
  })
})

describe('new rules and routes', () => {
  it('apply to the next request; what is under way ends where it began', async () => {
    const before = await TestUpstream.start((req, res) => void setTimeout(() => res.end(`old ${req.url}`), 200))
    const after = await TestUpstream.start((_req, res) => res.end('new'))
    const gateway = await TestGateway.start({ upstreams: [before.origin], rules: all('100/h') })
    const client = await RawConnection.open(gateway.address)
    client.write(get('/slow'))
    await expect.poll(() => before.open).toBe(1)
    gateway.running.apply(testFile({ upstreams: [after.origin], rules: all('3/h') }))
    const fresh = await ask(gateway.address, get('/'))
    expect(fresh.body.toString()).toBe('new')
    expect(fresh.field('ratelimit-policy')).toBe('"ip";q=3;w=3600')
    expect((await client.answer()).body.toString()).toBe('old /slow')
    // The connections of a route that is gone close.
    await expect
      .poll(() => new Promise((resolve) => before.server.getConnections((_error, count) => resolve(count))))
      .toBe(0)
  })
})

describe('a drain', () => {
  it('stops accepting, finishes what is under way, and closes connections with their answers', async () => {
    const up = await TestUpstream.start((_req, res) => void setTimeout(() => res.end('done'), 300))
    const gateway = await TestGateway.start({ upstreams: [up.origin] })
    const idle = await RawConnection.open(gateway.address)
    const busy = await RawConnection.open(gateway.address)
    busy.write(get('/'))
    await expect.poll(() => up.open).toBe(1)
    const drained = gateway.running.drain()
    await expect(RawConnection.open(gateway.address)).rejects.toThrow('ECONNREFUSED')
    await idle.closed()
    const answer = await busy.answer()
    expect(answer.body.toString()).toBe('done')
    expect(answer.field('connection')).toBe('close')
    await busy.closed()
    await drained
  })

  it('cuts at its end what does not finish', async () => {
    const up = await TestUpstream.start(() => {})
    const gateway = await TestGateway.start({ upstreams: [up.origin], gateway: { drain: '200ms' } })
    const client = await RawConnection.open(gateway.address)
    client.write(get('/'))
    await expect.poll(() => up.open).toBe(1)
    const began = performance.now()
    await gateway.running.drain()
    expect(performance.now() - began).toBeLessThan(1500)
    await client.closed()
    await expect.poll(() => up.open).toBe(0)
    expect(gateway.lines.map(({ message }) => message)).toContain('requests were cut at the end of the drain')
  })

  it('leaves nothing behind', async () => {
    const up = await TestUpstream.start()
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name === 'TCPServerWrap').length
    const before = timers()
    const gateway = await TestGateway.start({ upstreams: [up.origin], rules: all('100/h') })
    for (let i = 0; i < 5; i++) await ask(gateway.address, get('/'))
    await gateway.running.drain()
    await sleep(50)
    expect(timers()).toBeLessThanOrEqual(before)
  })
})
