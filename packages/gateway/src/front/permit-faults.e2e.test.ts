import { get as httpGet, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import { TestGateway, type TestSetup } from '../test-support/gateway.ts'
import { TestUpstream } from '../test-support/upstream.ts'

/** Answers by the path: `/401`, `/200/slow` (later, by `let`), `/200/part` (begins, and never ends). */
class Served {
  readonly gateway: TestGateway
  readonly upstream: TestUpstream
  readonly waiting: ServerResponse[]

  private constructor(gateway: TestGateway, upstream: TestUpstream, waiting: ServerResponse[]) {
    this.gateway = gateway
    this.upstream = upstream
    this.waiting = waiting
  }

  static async start(rules: object[], setup: TestSetup = {}): Promise<Served> {
    const waiting: ServerResponse[] = []
    const upstream = await TestUpstream.start((req, res) => {
      const [, status, how] = (req.url ?? '').split('/')
      res.statusCode = Number(status)
      if (how === 'part') res.write('a part')
      else if (how === 'slow') waiting.push(res)
      else res.end()
    })
    const gateway = await TestGateway.start({
      upstreams: [upstream.origin],
      rules: rules.map((rule, i) => ({ name: 'ab'[i], description: 'd', ...rule })),
      ...setup,
    })
    return new Served(gateway, upstream, waiting)
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<{ status: number }> {
    const answer = await fetch(this.gateway.address + path, { headers })
    await answer.arrayBuffer()
    return { status: answer.status }
  }

  /** How many more pass, of those that are charged. */
  async passing(path: string): Promise<number> {
    for (let passed = 0; ; passed++) {
      if ((await this.get(path)).status === 429) return passed
      await settled()
    }
  }

  /** Begins a request, and breaks off when its answer has begun. */
  async breakOff(path: string): Promise<void> {
    const asked = httpGet(this.gateway.address + path)
    asked.on('error', () => undefined)
    const answer = await new Promise<IncomingMessage>((resolve) => asked.on('response', resolve))
    await new Promise((resolve) => answer.once('data', resolve))
    answer.on('error', () => undefined)
    asked.destroy()
    await until('the upstream is let go', () => this.upstream.open === this.waiting.length)
  }
}

const settled = () => sleep(30)

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 5000
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`${what}: not in time`)
    await sleep(5)
  }
}

async function redis(): Promise<RedisServer> {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  return server
}

const stores: [string, () => Promise<TestSetup>][] = [
  ['memory', async () => ({})],
  ['redis', async () => ({ store: (await redis()).url, timeout: '1s' })],
]

describe.each(stores)('what is charged by the answer, on %s', (_, setup) => {
  const failures = { limits: [{ by: 'ip', limit: '5/h' }], countIf: { status: [401, 429, 500] } }

  it('is charged or given back once, whether the answer ends, its connection closes, or both (express-rate-limit PR#110)', async () => {
    const served = await Served.start([failures], await setup())
    for (const headers of [{}, { connection: 'close' }]) {
      for (let i = 0; i < 4; i++) {
        expect((await served.get('/200', headers)).status).toBe(200)
        await settled()
      }
    }
    expect((await served.get('/500')).status).toBe(500)
    expect((await served.get('/401', { connection: 'close' })).status).toBe(401)
    await settled()
    expect(await served.passing('/401')).toBe(3)
  })

  it('goes by the status of an answer that is broken off, once it was sent (express-rate-limit PR#108)', async () => {
    const served = await Served.start([failures], await setup())
    for (let i = 0; i < 3; i++) await served.breakOff('/200/part')
    await served.breakOff('/401/part')
    await settled()
    expect(await served.passing('/401')).toBe(4)
  })

  it('is nothing for the gateway’s own refusals: they are neither charged nor given back (express-rate-limit#325)', async () => {
    const strict = { limits: [{ by: 'global', limit: '2/h', burst: 2 }], match: { path: '/200' } }
    const served = await Served.start([failures, strict], await setup())
    expect((await served.get('/401')).status).toBe(401)
    await settled()
    const statuses: number[] = []
    for (let i = 0; i < 8; i++) {
      statuses.push((await served.get('/200')).status)
      await settled()
    }
    expect(statuses).toEqual([200, 200, 429, 429, 429, 429, 429, 429])
    expect(await served.passing('/401')).toBe(4)
    for (let i = 0; i < 5; i++) expect((await served.get('/401')).status).toBe(429)
  })

  it('gives nothing back to a window after its own (express-rate-limit PR#112)', async () => {
    const window = { by: 'ip', limit: '3/2s', algorithm: 'fixed-window', align: 'first-hit' }
    const served = await Served.start([{ ...failures, limits: [window] }], await setup())
    const slow = [served.get('/200/slow'), served.get('/200/slow')]
    await until('both are under way', () => served.waiting.length === 2)
    await sleep(2050)
    expect((await served.get('/401')).status).toBe(401)
    for (const res of served.waiting) res.end()
    for (const answer of slow) expect((await answer).status).toBe(200)
    await settled()
    expect(await served.passing('/401')).toBe(2)
  })
})

describe('slots of a gateway', () => {
  const slots = (ttl: string) => ({ limits: [{ by: 'global', limit: 2, algorithm: 'concurrency', ttl }] })

  it('come back once each where clients break off in the middle of an answer (apache/apisix#12823)', async () => {
    const served = await Served.start([slots('1m')], { store: (await redis()).url, timeout: '1s' })
    const held = served.get('/200/slow')
    await until('one is held', () => served.waiting.length === 1)
    for (let i = 0; i < 4; i++) {
      await served.breakOff('/200/part')
      await until('one slot is back', async () => (await served.get('/200')).status === 200)
    }
    // One is held still: of two, one is free, and not two.
    const other = served.get('/200/slow')
    await until('both are held', () => served.waiting.length === 2)
    expect((await served.get('/200')).status).toBe(429)
    for (const res of served.waiting) res.end()
    for (const answer of [held, other]) expect((await answer).status).toBe(200)
  })

  it('lapse where Redis was away when they were to be given back (apache/shenyu#6646)', async () => {
    const server = await redis()
    const served = await Served.start([{ ...slots('1s'), onStoreFailure: 'closed' }], {
      store: server.url,
      timeout: '200ms',
    })
    const held = [served.get('/200/slow'), served.get('/200/slow')]
    await until('both are held', () => served.waiting.length === 2)
    await sleep(1500)
    // They are renewed for as long as the requests last.
    expect((await served.get('/200')).status).toBe(429)
    server.pause()
    for (const res of served.waiting) res.end()
    for (const answer of held) expect((await answer).status).toBe(200)
    await sleep(300)
    server.resume()
    await until('a slot is back', async () => (await served.get('/200')).status === 200)
    const leaving = request(`${served.gateway.address}/200/slow`).on('error', () => undefined)
    leaving.end()
    await until('it is under way', () => served.waiting.length === 3)
    expect((await served.get('/200')).status).toBe(200)
    leaving.destroy()
  })
})
