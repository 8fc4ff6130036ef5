import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../../test/redis.ts'
import { TestGateway, type TestSetup } from '../test-support/gateway.ts'
import { type Answering, TestUpstream } from '../test-support/upstream.ts'

async function started(rule: object | object[], answering?: Answering, setup: TestSetup = {}) {
  const upstream = await TestUpstream.start(answering)
  const { admin, ...rest } = setup
  const gateway = await TestGateway.start({
    upstreams: [`http://127.0.0.1:${upstream.port}`],
    rules: [rule].flat().map((each, i) => ({ name: 'abc'[i], description: 'd', ...each })),
    ...rest,
    ...(admin === undefined ? {} : { admin }),
  })
  const url = gateway.address
  const get = (path = '/', headers: Record<string, string> = {}) => fetch(url + path, { headers })
  return { upstream, gateway, url, get }
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 5000
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`${what}: not in time`)
    await sleep(5)
  }
}

async function redisStore(): Promise<string> {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  return server.url
}

describe('slots of a concurrency limit', () => {
  const rule = { limits: [{ by: 'global', limit: 2, algorithm: 'concurrency', ttl: '1m' }] }

  it('are held for the life of a request, and given back however it ends', async () => {
    const waiting: (() => void)[] = []
    const { upstream, url, get } = await started(
      rule,
      (req, res) => {
        if (req.url === '/broken') res.destroy()
        else if (req.url === '/now') res.end('now')
        else waiting.push(() => res.end('done'))
      },
      { store: await redisStore(), timeout: '1s' },
    )
    const [first, second] = [get('/slow'), get('/slow')]
    await until('two under way', () => waiting.length === 2)
    const refused = await get('/now')
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([429, true])
    waiting[0]?.()
    expect((await first).status).toBe(200)
    await until('a slot', async () => (await get('/now')).status === 200)
    // An upstream that breaks off gives it back too.
    for (let i = 0; i < 5; i++) expect((await get('/broken')).status).toBe(502)
    await until('a slot', async () => (await get('/now')).status === 200)
    // So does a client that leaves in the middle.
    for (let i = 0; i < 5; i++) {
      const before = upstream.open
      const leaving = request(`${url}/slow`).on('error', () => undefined)
      leaving.end()
      await until('it is under way', () => upstream.open > before)
      leaving.destroy()
      await until('a slot', async () => (await get('/now')).status === 200)
    }
    waiting[1]?.()
    expect((await second).status).toBe(200)
  })
})

describe('countIf', () => {
  const rule = { limits: [{ by: 'global', limit: '3/h' }], countIf: { status: [401, 403] } }

  it.each(['memory', 'redis'])('charges only the answers that it names, once each, on %s', async (kind) => {
    let status = 200
    const store = kind === 'memory' ? 'memory' : await redisStore()
    const { get } = await started(rule, (_, res) => res.writeHead(status).end(), { store, timeout: '1s' })
    for (let i = 0; i < 10; i++) {
      expect((await get()).status).toBe(200)
      await sleep(20)
    }
    status = 401
    for (let i = 0; i < 3; i++) {
      expect((await get()).status).toBe(401)
      await sleep(20)
    }
    expect((await get()).status).toBe(429)
    expect((await get()).status).toBe(429)
  })

  it('goes on for a key however many requests came, and beside slots of another rule', async () => {
    const { get } = await started([
      { limits: [{ by: 'global', limit: '100000/s' }], countIf: { status: 401 } },
      { limits: [{ by: 'global', limit: 50, algorithm: 'concurrency' }] },
    ])
    for (let i = 0; i < 180; i++) {
      const statuses = await Promise.all(Array.from({ length: 25 }, async () => (await get()).status))
      expect(statuses).toEqual(Array(25).fill(200))
    }
  })

  it('charges a request that has no answer, so that leaving early is no way round it', async () => {
    const { upstream, url, get } = await started(rule, () => undefined)
    for (let i = 0; i < 3; i++) {
      const leaving = request(url).on('error', () => undefined)
      leaving.end()
      await until('it is under way', () => upstream.open > 0)
      leaving.destroy()
      await until('it is over', () => upstream.open === 0)
    }
    upstream.answering = (_, res) => res.end()
    await sleep(50)
    expect((await get()).status).toBe(429)
  })
})

describe('a request that may wait', () => {
  it('waits in line, first come first served, and is refused at once where its place comes too late', async () => {
    const { get } = await started({ limits: [{ by: 'global', limit: '2/s', burst: 1 }], maxWait: '1600ms' })
    const beganMs = performance.now()
    const answers = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const { status } = await get()
        return { status, ms: performance.now() - beganMs }
      }),
    )
    const admitted = answers.filter(({ status }) => status === 200).map(({ ms }) => ms)
    expect(admitted).toHaveLength(4)
    expect(Math.max(...admitted)).toBeGreaterThanOrEqual(1490)
    for (const { status, ms } of answers) if (status === 429) expect(ms).toBeLessThan(1000)
  })

  it('gives its place back when the client leaves', async () => {
    const { url, get } = await started({ limits: [{ by: 'global', limit: '1/s', burst: 1 }], maxWait: '1500ms' })
    expect((await get()).status).toBe(200)
    const leaving = request(url).on('error', () => undefined)
    leaving.end()
    await sleep(100)
    leaving.destroy()
    await sleep(50)
    const beganMs = performance.now()
    expect((await get()).status).toBe(200)
    expect(performance.now() - beganMs).toBeLessThan(1100)
  })

  it('passes after its wait where the rule says so, and the upstream is told, by nobody but the gateway', async () => {
    const rule = { limits: [{ by: 'global', limit: '1/h', burst: 1 }], maxWait: '50ms', afterWait: 'allow' }
    const { upstream, get } = await started(rule)
    const forged = { 'x-headgate-overflow': 'forged' }
    expect((await get('/', forged)).status).toBe(200)
    const beganMs = performance.now()
    const passed = await get('/', forged)
    expect([passed.status, performance.now() - beganMs >= 49]).toEqual([200, true])
    expect(upstream.seen.map((seen) => seen.values('x-headgate-overflow'))).toEqual([[], ['a']])
  })

  it('is refused by a rule that lets nobody wait or pass, whatever another rule allows', async () => {
    const patient = { limits: [{ by: 'global', limit: '1/h', burst: 1 }], maxWait: '50ms', afterWait: 'allow' }
    const { get } = await started([patient, { limits: [{ by: 'ip', limit: '2/m', burst: 2 }] }])
    expect([(await get()).status, (await get()).status]).toEqual([200, 200])
    // The second passed uncharged; what the other rule has left is for the next one that is charged.
    const strict = await started([patient, { limits: [{ by: 'ip', limit: '1/m', burst: 1 }] }])
    expect([(await strict.get()).status, (await strict.get()).status]).toEqual([200, 429])
  })

  it('waits for no other rule than those that say so, shadow rules least of all', async () => {
    const strict = { limits: [{ by: 'global', limit: '2/s', burst: 1 }] }
    const patient = { limits: [{ by: 'ip', limit: '100/s' }], maxWait: '2s' }
    const { get } = await started([strict, patient])
    expect((await get()).status).toBe(200)
    const beganMs = performance.now()
    expect((await get()).status).toBe(429)
    expect(performance.now() - beganMs).toBeLessThan(300)
  })

  it('is judged also beside a leaky bucket whose line is longer than anybody waits', async () => {
    const line = { limits: [{ by: 'global', limit: '1/365d', algorithm: 'leaky-bucket', queue: 20 }] }
    const { get } = await started([{ maxWait: '50ms', limits: [{ by: 'ip', limit: '100/s' }] }, line])
    expect((await get()).status).toBe(200)
  })

  it('is shaped by a leaky bucket', async () => {
    const rule = { limits: [{ by: 'global', limit: '20/s', algorithm: 'leaky-bucket', queue: 3 }] }
    const atMs: number[] = []
    const { get } = await started(rule, (_, res) => {
      atMs.push(performance.now())
      res.end()
    })
    const statuses = (await Promise.all(Array.from({ length: 6 }, () => get()))).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(4)
    const gaps = atMs.slice(1).map((ms, i) => ms - (atMs[i] as number))
    for (const gap of gaps) expect(gap).toBeGreaterThan(30)
  })
})

describe('what is judged beside a request', () => {
  it('is counted, and never seen in the answer', async () => {
    const rule = {
      limits: [{ by: 'global', limit: '5/h' }],
      candidate: { limits: [{ by: 'global', limit: '2/h' }] },
      disclose: true,
    }
    const { get, gateway } = await started(rule, undefined, { admin: { listen: '127.0.0.1:0' } })
    const statuses: number[] = []
    for (let i = 0; i < 7; i++) {
      const answer = await get()
      statuses.push(answer.status)
      expect(answer.headers.get('ratelimit-policy')).toBe('"global";q=5;w=3600')
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
    const metrics = await (await fetch(`${gateway.running.adminAddress}/metrics`)).text()
    expect(metrics).toContain(
      'headgate_decisions_total{rule="a",limit="global",outcome="candidate_limited",source="store"} 5',
    )
    expect(metrics).toContain('headgate_decisions_total{rule="a",limit="global",outcome="limited",source="store"} 2')
  })

  it('refuses nobody where a rule is in mode shadow', async () => {
    const setup = { admin: { listen: '127.0.0.1:0' } }
    const { get, gateway } = await started({ limits: [{ by: 'ip', limit: '1/h' }], mode: 'shadow' }, undefined, setup)
    for (let i = 0; i < 3; i++) {
      const answer = await get()
      expect([answer.status, answer.headers.get('ratelimit')]).toEqual([200, null])
    }
    const metrics = await (await fetch(`${gateway.running.adminAddress}/metrics`)).text()
    expect(metrics).toContain('headgate_decisions_total{rule="a",limit="ip",outcome="shadow_limited",source="store"} 2')
    expect(metrics).toContain('headgate_decisions_total{rule="a",limit="",outcome="allowed",source="store"} 1')
  })

  it('blocks who goes on although it is refused', async () => {
    const rule = {
      limits: [{ by: 'ip', limit: '1/s' }],
      penalty: { refusals: 2, within: '1m', block: '1h' },
    }
    const { get } = await started(rule)
    const waits: (string | null)[] = []
    for (let i = 0; i < 4; i++) waits.push((await get()).headers.get('retry-after'))
    expect(waits).toEqual([null, '1', '1', '3600'])
  })
})
