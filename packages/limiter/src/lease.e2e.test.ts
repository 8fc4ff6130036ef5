import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis-5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../test/fresh-build.ts'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { startProxy } from '../../../test/tcp-proxy.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import type { Decision, Source } from './decision.ts'
import { createEngine, type Engine } from './engine.ts'
import type { Limit } from './limit.ts'
import type { CheckItem } from './part.ts'
import type { RemoteStore } from './store.ts'
import { redisStore } from './stores/redis/index.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const RATE = 20_000
const BURST = 10_000

/** Asks as fast as it can until its standard input ends; every admission is in its file before the next is asked for. */
const PROGRAM = `
import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { createEngine, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-5'
const store = redisStore(new Redis(process.env.REDIS_URL, { lazyConnect: true }))
const engine = createEngine({ store, timeoutMs: 200 })
const limit = tokenBucket({ limit: ${RATE}, period: '1s', burst: ${BURST} })
const item = { name: 'hot', limit, key: '', accuracy: 'lease', onStoreFailure: 'closed' }
const file = openSync(process.env.LOG, 'a')
const entry = new Float64Array(2)
let over = false
process.stdin.resume().on('end', () => { over = true })
console.log('ready')
await Promise.all(Array.from({ length: 16 }, async () => {
  for (let i = 1; !over; i++) {
    const { allowed, at, source } = await engine.check([item])
    if (allowed) {
      entry[0] = Math.round(at * 1000)
      entry[1] = source === 'lease' ? 1 : 0
      writeSync(file, entry)
    } else await sleep(1)
    if (i % 16 === 0) await turn()
  }
}))
await engine.close()
await store.close()
process.stdin.destroy()
`

let server: RedisServer
let redis: Redis
let engines: [Engine, RemoteStore][]

beforeAll(async () => {
  assertFreshBuild()
  server = await startRedis()
  redis = new Redis(server.url)
})

beforeEach(async () => {
  engines = []
  await redis.flushall()
})

afterEach(async () => {
  for (const [engine, store] of engines) {
    await engine.close()
    await store.close()
  }
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

function open(timeoutMs = 1000): Engine {
  const store = redisStore(new Redis(server.url, { lazyConnect: true }))
  const engine = createEngine({ store, timeoutMs })
  engines.push([engine, store])
  return engine
}

function leased(limit: Limit, key = ''): CheckItem[] {
  return [{ name: 'hot', limit, key, accuracy: 'lease', onStoreFailure: 'closed' }]
}

const DAY = fixedWindow({ limit: 1_000_000, period: '1d', align: 'first-hit' })
const remaining = async (engine: Engine, items: CheckItem[]) => (await engine.peek(items)).limits[0]?.remaining

/** Checks one after the other, until a condition holds or so many were made. */
async function checkUntil(engine: Engine, items: CheckItem[], most: number, done = (_: Decision) => false) {
  const sources: Record<Source, number> = { store: 0, lease: 0, 'deny-cache': 0, local: 0, policy: 0 }
  let admitted = 0
  for (let i = 0; i < most; i++) {
    const decision = await engine.check(items)
    sources[decision.source] += 1
    if (decision.allowed) admitted += 1
    if (done(decision)) break
    if (i % 16 === 0) await new Promise(setImmediate)
  }
  return { sources, admitted }
}

describe('a lease', () => {
  it('decides from what was taken ahead, with far fewer commands than decisions', async () => {
    const engine = open()
    await engine.check(leased(DAY))
    const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1])
    const before = await calls()
    const { sources, admitted } = await checkUntil(engine, leased(DAY), 20_000)
    expect(admitted).toBe(20_000)
    expect(sources.lease).toBeGreaterThan(15_000)
    expect((await calls()) - before).toBeLessThan(5000)
  })

  it('is told apart, knows what is left at least, has no receipt, and is not degraded', async () => {
    const engine = open()
    let decision = await engine.check(leased(DAY))
    await checkUntil(engine, leased(DAY), 5000, (each) => {
      decision = each
      return each.source === 'lease'
    })
    expect(decision).toMatchObject({ allowed: true, source: 'lease', degraded: false, retryAfterMs: 0 })
    expect(decision.receipt).toBeUndefined()
    expect(decision.limits[0]).toMatchObject({ name: 'hot', limit: 1_000_000, capacity: 1_000_000 })
    expect(decision.limits[0]?.remaining).toBeLessThan(1_000_000)
    expect(decision.limits[0]?.remaining).toBeGreaterThan(990_000)
  })

  it('gives everything back when the engine is closed: what is used is what was admitted', async () => {
    const [a, b] = [open(), open()]
    const all = await Promise.all([a, b].map((engine) => checkUntil(engine, leased(DAY), 5000)))
    expect(a.strandedUnits + b.strandedUnits).toBeGreaterThan(0)
    await Promise.all([a.close(), b.close()])
    const admitted = all.reduce((sum, each) => sum + each.admitted, 0)
    expect(await remaining(open(), leased(DAY))).toBe(1_000_000 - admitted)
  })

  it('goes back by itself when nobody asks any more', async () => {
    const engine = open()
    const { admitted } = await checkUntil(engine, leased(DAY), 3000)
    const other = open()
    await expect.poll(() => remaining(other, leased(DAY)), { timeout: 2000 }).toBe(1_000_000 - admitted)
    expect(engine.strandedUnits).toBe(0)
  })

  it('is recalled by a block elsewhere, within 100 ms', async () => {
    const [engine, other] = [open(), open()]
    await checkUntil(engine, leased(DAY), 3000)
    let blockedMs = Number.POSITIVE_INFINITY
    const running = checkUntil(engine, leased(DAY), 1e9, ({ allowed }) => !allowed)
    await other.block(leased(DAY))
    blockedMs = performance.now()
    await running
    expect(performance.now() - blockedMs).toBeLessThan(100)
    expect(await engine.check(leased(DAY))).toMatchObject({ allowed: false, reason: 'blocked' })
  })

  it('is recalled by a check elsewhere under numbers by which too much is lent', async () => {
    const [engine, other] = [open(), open()]
    await checkUntil(engine, leased(DAY), 30_000)
    await expect.poll(() => engine.strandedUnits).toBeGreaterThan(100)
    await other.check(leased(fixedWindow({ limit: 1000, period: '1d', align: 'first-hit' })))
    // Earlier than what is idle goes back by itself.
    await expect.poll(() => engine.strandedUnits, { timeout: 60, interval: 5 }).toBe(0)
  })

  it('is given back before this engine resets or blocks the counter', async () => {
    const engine = open()
    await checkUntil(engine, leased(DAY), 3000)
    await engine.reset(leased(DAY))
    expect(await remaining(engine, leased(DAY))).toBe(1_000_000)
    await checkUntil(engine, leased(DAY), 3000)
    await engine.block(leased(DAY))
    expect(await engine.check(leased(DAY))).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(engine.strandedUnits).toBe(0)
  })

  it('goes on while Redis does not answer, but not beyond its end', async () => {
    const engine = open(50)
    await checkUntil(engine, leased(DAY), 30_000)
    await expect.poll(() => engine.strandedUnits).toBeGreaterThan(20)
    server.pause()
    try {
      const units = engine.strandedUnits
      const { sources } = await checkUntil(engine, leased(DAY), 1e6, ({ source }) => source !== 'lease')
      expect(sources.lease).toBe(units)
      await sleep(1000)
      expect(engine.strandedUnits).toBe(0)
      expect((await engine.check(leased(DAY))).source).toBe('policy')
    } finally {
      server.resume()
    }
  })

  it.each([
    ['a small budget', leased(tokenBucket({ limit: 199, period: '1h', burst: 199 }))],
    ['a limit without it', leased(DAY).map(({ accuracy: _, ...item }) => item)],
    ['one that begins exhausted', leased(tokenBucket({ limit: 1e6, period: '1s', initial: 'empty' }))],
    [
      'a shadow rule beside it',
      [...leased(DAY), ...leased(DAY, 'b').map((i) => ({ ...i, rule: 's', group: 'shadow' as const }))],
    ],
  ])('is never made of %s', async (_, items) => {
    const { sources } = await checkUntil(open(), items, 300)
    expect(sources.lease).toBe(0)
  })
})

describe('four processes at full speed on one key, one of them killed and one cut off', () => {
  it('never admit more than the law, on the instants of use', { timeout: 30_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-lease-'))
    const proxy = await startProxy(Number(new URL(server.url).port))
    const logs = Array.from({ length: 4 }, (_, i) => join(folder, `${i}`))
    const children = logs.map((log, i) => start(log, i === 1 ? `redis://127.0.0.1:${proxy.port}` : server.url))
    try {
      await Promise.all(children.map(({ stdout }) => once(stdout as NonNullable<typeof stdout>, 'data')))
      await sleep(1500)
      children[0]?.kill('SIGKILL')
      await sleep(500)
      proxy.cutAfterNextWrite()
      await sleep(1500)
      for (const child of children) child.stdin?.end()
      await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'close')))
      const uses = logs.flatMap(read).sort(([a], [b]) => a - b)
      expect(uses.length).toBeGreaterThan(RATE)
      expect(uses.filter(([, isLease]) => isLease === 1).length).toBeGreaterThan(uses.length / 4)
      expect(overshoot(uses)).toBeLessThanOrEqual(1e-6)
    } finally {
      for (const child of children) child.kill('SIGKILL')
      await proxy.close()
      rmSync(folder, { recursive: true })
    }
  })
})

function start(log: string, url: string): ChildProcess {
  return spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, REDIS_URL: url, LOG: log },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
}

function read(log: string): [atUs: number, isLease: number][] {
  const { buffer, byteOffset, byteLength } = readFileSync(log)
  const numbers = new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength))
  return Array.from({ length: numbers.length / 2 }, (_, i) => [numbers[2 * i] as number, numbers[2 * i + 1] as number])
}

/** By how many units the bucket was overdrawn at most. */
function overshoot(uses: readonly [atUs: number, isLease: number][]): number {
  let level = 0
  let lastUs = 0
  let most = 0
  for (const [atUs] of uses) {
    level = Math.max(0, level - ((atUs - lastUs) * RATE) / 1e6) + 1
    lastUs = atUs
    most = Math.max(most, level)
  }
  return most - BURST
}
