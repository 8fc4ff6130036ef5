import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { assertFreshBuild } from '../../../../test/fresh-build.ts'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import { folderWith, headgateUp } from '../test-support/headgate.ts'

let upstream: Server
let redis: RedisServer
let underWay = 0

/** `/held` is never answered. */
beforeAll(async () => {
  assertFreshBuild()
  redis = await startRedis()
  upstream = createServer((req, res) => {
    underWay += 1
    if (req.url !== '/held') res.end('served')
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
})

afterAll(async () => {
  upstream.close()
  upstream.closeAllConnections()
  await redis.stop()
})

/** A gateway in a process of its own. */
async function node(rules: string) {
  const { port } = upstream.address() as AddressInfo
  const text = `
store: ${redis.url}
timeout: 2s
gateway: { listen: "127.0.0.1:0", routes: [{ path: /*, upstream: ["http://127.0.0.1:${port}"] }] }
admin: { listen: "127.0.0.1:0" }
rules:
${rules}`
  const cwd = folderWith({ 'headgate.yaml': text }, onTestFinished)
  const running = await headgateUp([], { cwd })
  const [, address = ''] = /address=(\S+)/.exec(running.stdout) ?? []
  return { running, get: (path: string, signal?: AbortSignal) => fetch(address + path, { signal: signal ?? null }) }
}

const rule = (name: string, limit: string) =>
  `  - { name: ${name}, description: d, match: { path: /${name} }, limits: [{ by: ip, ${limit} }] }\n`

describe('gateways on one Redis', () => {
  it('refuse on whichever node, and tell one reset that does not move (mailgun/gubernator#208)', async () => {
    const rules = rule('one', 'limit: 1/30s, algorithm: fixed-window, align: first-hit')
    const nodes = await Promise.all([node(rules), node(rules)])
    const resets: number[] = []
    for (let i = 0; i < 8; i++) {
      const answer = await (nodes[i % 2] as (typeof nodes)[number]).get('/one')
      expect(answer.status).toBe(i === 0 ? 200 : 429)
      const [, seconds] = /t=(\d+)/.exec(answer.headers.get('ratelimit') ?? '') ?? []
      resets.push(Date.now() / 1000 + Number(seconds))
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    expect(Math.max(...resets) - Math.min(...resets)).toBeLessThan(1.5)
  })

  it('count together on different versions of the rules (apache/apisix#7746)', async () => {
    const shared = rule('shared', 'limit: 10/h')
    const nodes = await Promise.all([node(shared + rule('b', 'limit: 5/s')), node(rule('b', 'limit: 9/h') + shared)])
    let allowed = 0
    for (let i = 0; i < 100; i++) {
      if ((await (nodes[i % 2] as (typeof nodes)[number]).get('/shared')).ok) allowed += 1
    }
    expect(allowed).toBe(10)
  })

  it('get the slots of a node that was killed back within their ttl (apache/apisix#12823)', async () => {
    const rules = rule('held', 'limit: 2, algorithm: concurrency, ttl: 2s')
    const [holder, other] = await Promise.all([node(rules), node(rules)])
    const before = underWay
    const held = [holder.get('/held'), holder.get('/held')].map((answer) => answer.catch(() => undefined))
    while (underWay < before + 2) await new Promise((resolve) => setTimeout(resolve, 5))
    // Longer than a slot lasts: the living renew theirs.
    await new Promise((resolve) => setTimeout(resolve, 2500))
    expect((await other.get('/held')).status).toBe(429)
    holder.running.kill()
    await Promise.all(held)
    const killedMs = performance.now()
    // One that is let through is not answered either, but seen at the upstream.
    while (underWay === before + 2) {
      const answer = await other.get('/held', AbortSignal.timeout(300)).catch(() => undefined)
      expect(answer?.status ?? 429).toBe(429)
    }
    expect(performance.now() - killedMs).toBeLessThan(4000)
  })
})
