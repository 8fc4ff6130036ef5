import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis-5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../test/fresh-build.ts'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createEngine, type Engine } from './engine.ts'
import type { Limit } from './limit.ts'
import type { CheckItem } from './part.ts'
import type { RemoteStore } from './store.ts'
import { redisStore } from './stores/redis/index.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Waits in line as often as it is told, or holds slots until it is killed. */
const PROGRAM = `
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, createEngine, fixedWindow, slidingLog, slidingWindow, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-5'
const store = redisStore(new Redis(process.env.REDIS_URL, { lazyConnect: true }))
const engine = createEngine({ store, timeoutMs: 10000 })
const line = [{ name: 'line', limit: tokenBucket({ limit: 20, period: '1s', burst: 1 }), key: '' }]
const slots = [{ name: 'slots', limit: concurrency({ limit: 2, ttl: '1s' }), key: '', cost: 2 }]
const now = () => performance.timeOrigin + performance.now()
const lines = {
  bucket: tokenBucket({ limit: 20, period: '1s', burst: 1 }),
  log: slidingLog({ limit: 3, period: '150ms' }),
  strict: slidingWindow({ limit: 3, period: '150ms', slices: 3, strict: true }),
  window: fixedWindow({ limit: 3, period: '150ms' }),
  slots: concurrency({ limit: 2, ttl: '10s' }),
}
await engine.peek(line)
console.log('ready')
const [told] = await once(process.stdin, 'data')
if (process.env.TASK === 'queue') {
  const { of, firstMs, everyMs } = JSON.parse(told)
  const items = of.map((name) => ({ name, limit: lines[name], key: 'queue' }))
  const turns = await Promise.all(Array.from({ length: 5 }, async (_, i) => {
    await sleep(firstMs + i * everyMs - now())
    const cameMs = now()
    const { allowed, at, waitedMs, release } = await engine.acquire(items, { timeoutMs: 20000 })
    await sleep(release ? 60 : 0)
    await release?.()
    return { cameMs, allowed, at, waitedMs }
  }))
  console.log(JSON.stringify(turns))
  await engine.close()
  await store.close()
  process.stdin.destroy()
} else if (process.env.TASK === 'hold') {
  const { allowed } = await engine.check(slots)
  console.log(JSON.stringify({ allowed }))
  setInterval(() => {}, 1000)
} else {
  const places = await Promise.all(Array.from({ length: 5 }, async () => {
    const { allowed, at, waitedMs, delayMs } = await engine.acquire(line, { timeoutMs: 10000 })
    return { allowed, at, startMs: now(), waitedMs, delayMs }
  }))
  console.log(JSON.stringify(places))
  await engine.close()
  await store.close()
  process.stdin.destroy()
}
`

let server: RedisServer
let redis: Redis
let store: RemoteStore
let engine: Engine
const children: ChildProcess[] = []

beforeAll(async () => {
  assertFreshBuild()
  server = await startRedis()
  redis = new Redis(server.url)
})

beforeEach(async () => {
  await redis.flushall()
  store = redisStore(new Redis(server.url, { lazyConnect: true }))
  engine = createEngine({ store, timeoutMs: 10_000 })
})

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await engine.close()
  await store.close()
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

async function startProcess(task: string) {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, REDIS_URL: server.url, TASK: task },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('ready')
  return {
    child,
    go: (told: object = {}) => child.stdin.write(`${JSON.stringify(told)}\n`),
    line: async () => JSON.parse((await lines.next()).value),
  }
}

const item = (limit: Limit, cost = 1, name: string = limit.algorithm): CheckItem[] => [{ name, limit, key: '', cost }]
const now = () => performance.timeOrigin + performance.now()

/** Acquires, and says when it was let go, by this process's clock, which is the server's here. */
async function timed(items: CheckItem[], options: { timeoutMs?: number; signal?: AbortSignal } = {}) {
  const decision = await engine.acquire(items, { timeoutMs: 10_000, ...options })
  return { decision, startMs: now() }
}

describe('a line before one budget', () => {
  it('is first come first served across processes, and nobody starts early', async () => {
    const processes = await Promise.all([1, 2, 3].map(() => startProcess('wait')))
    for (const one of processes) one.go()
    type Place = { allowed: boolean; at: number; startMs: number; delayMs: number }
    const places = (await Promise.all(processes.map((one) => one.line()))).flat() as Place[]
    expect(places.every(({ allowed, delayMs }) => allowed && delayMs === 0)).toBe(true)
    // In the order in which Redis judged them; those of one batch have one instant.
    const order = places.toSorted((a, b) => a.at - b.at || a.startMs - b.startMs)
    const firstMs = (order[0] as Place).at
    for (const [i, { startMs, at }] of order.entries()) {
      // A clock that counts in ms beside one that counts in µs.
      expect(startMs).toBeGreaterThanOrEqual(Math.max(at, firstMs + 50 * i) - 1)
    }
    const starts = order.map(({ startMs }) => startMs)
    // A busy machine may wake two late, but never in the wrong order by a whole place.
    for (const [i, startMs] of starts.entries()) if (i > 1) expect(startMs).toBeGreaterThan(starts[i - 2] as number)
  })

  it.each([['log'], ['strict'], ['window', 'log'], ['slots'], ['bucket', 'slots']])(
    'is first come first served across processes before what does not book, too: %s %s',
    async (...of) => {
      const processes = await Promise.all([1, 2, 3].map(() => startProcess('queue')))
      const firstMs = now() + 100
      // One comes every 15 ms, by turns from each process: faster than they are let through.
      for (const [i, one] of processes.entries()) one.go({ of, firstMs: firstMs + 15 * i, everyMs: 45 })
      type Turn = { cameMs: number; allowed: boolean; at: number; waitedMs: number }
      const turns = (await Promise.all(processes.map((one) => one.line()))).flat() as Turn[]
      turns.sort((a, b) => a.cameMs - b.cameMs)
      expect(turns.map(({ allowed }) => allowed)).toEqual(turns.map(() => true))
      const at = turns.map((turn) => turn.at)
      // Where there is room for two at once, they come in the order in which they ask: of slots up to 100 ms apart, and a
      // busy machine wakes late.
      const apartMs = of.includes('slots') ? 200 : 80
      for (const [i, turn] of at.entries()) expect(turn).toBeGreaterThan(Math.max(...at.slice(0, i + 1)) - apartMs)
      expect(turns.filter(({ waitedMs }) => waitedMs > 30).length).toBeGreaterThan(5)
    },
  )

  it('is passed by nobody who only checks, and left by who goes away', async () => {
    const log = item(slidingLog({ limit: 1, period: '400ms' }))
    await engine.check(log)
    const leaving = new AbortController()
    const [second, third] = [timed(log, { signal: leaving.signal }), timed(log)]
    // 15 of them ask in the 400 ms in which two wait.
    const checks = Promise.all(
      Array.from({ length: 15 }, async (_, i) => {
        await sleep(i * 20)
        return (await engine.check(log)).allowed
      }),
    )
    await sleep(50)
    leaving.abort(new Error('the second leaves'))
    await expect(second).rejects.toThrow('the second leaves')
    expect(await checks).not.toContain(true)
    const { decision } = await third
    expect([decision.allowed, (decision.waitedMs ?? 0) < 950]).toEqual([true, true])
  })

  it('gives the places of those who leave to the next ones, of another process too, and each to one', async () => {
    const joining = await startProcess('queue')
    const line = item(tokenBucket({ limit: 20, period: '1s', burst: 1 }), 1, 'bucket')
    const queue = line.map((one) => ({ ...one, key: 'queue' }))
    const first = await timed(queue)
    const leaving = new AbortController()
    const waiting = Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => timed(queue, i >= 8 && i < 13 ? { signal: leaving.signal } : {})),
    )
    await engine.peek(queue)
    leaving.abort(new Error('gone'))
    joining.go({ of: ['bucket'], firstMs: now() + 20, everyMs: 0 })
    const turns = (await joining.line()) as { cameMs: number; allowed: boolean; waitedMs: number }[]
    const joined = turns.map(({ cameMs, waitedMs }) => cameMs + waitedMs - first.decision.at)
    const stayed = (await waiting).flatMap((one) =>
      one.status === 'fulfilled' ? [one.value.startMs - first.decision.at] : [],
    )
    expect([turns.map(({ allowed }) => allowed), stayed.length]).toEqual([Array(5).fill(true), 15])
    // Behind all who waited they would have come from 1050 ms on.
    expect(Math.max(...joined)).toBeLessThan(1000)
    // All 20 turns behind the first are had by one each, and by nobody early.
    for (const [i, startMs] of [...stayed, ...joined].toSorted((a, b) => a - b).entries()) {
      expect(startMs).toBeGreaterThan(50 * (i + 1) - 1)
    }
  })

  it('refuses at once a place that comes too late, and charges nothing then', async () => {
    const one = item(tokenBucket({ limit: 1, period: '1s', burst: 1 }))
    await engine.check(one)
    const { decision, startMs } = await timed(one, { timeoutMs: 500 })
    expect([decision.allowed, decision.reason]).toEqual([false, 'limit'])
    expect(decision.retryAfterMs).toBeGreaterThan(900)
    expect(startMs - decision.at).toBeLessThan(300)
    expect((await engine.peek(one)).limits[0]?.retryAfterMs).toBeLessThanOrEqual(1000)
  })

  it('is not passed by small calls: a waiting large one has its turn (jhurliman/node-rate-limiter PR#56)', async () => {
    const bucket = tokenBucket({ limit: 50, period: '1s', burst: 20 })
    await engine.check(item(bucket, 20))
    const large = timed(item(bucket, 20))
    let small = 0
    let over = false
    const flood = (async () => {
      while (!over) {
        if ((await engine.check(item(bucket, 1))).allowed) small += 1
        await sleep(1)
      }
    })()
    const { decision } = await large
    over = true
    await flood
    expect([decision.allowed, small]).toEqual([true, 0])
    expect(decision.waitedMs).toBeLessThan(600)
  })

  it('stands before the next windows too, each with its own units', async () => {
    const window = item(fixedWindow({ limit: 2, period: '200ms' }))
    const starts = await Promise.all(Array.from({ length: 7 }, () => timed(window)))
    const windows = new Map<number, number>()
    for (const { startMs, decision } of starts) {
      expect(decision.allowed).toBe(true)
      const of = Math.floor(startMs / 200)
      windows.set(of, (windows.get(of) ?? 0) + 1)
    }
    // Whoever wakes late starts in the window after its own.
    expect(Math.max(...windows.values())).toBeLessThanOrEqual(4)
    expect(windows.size).toBeGreaterThanOrEqual(3)
  })

  it('over several limits starts at the latest place, and all are charged when it is taken', async () => {
    const bucket = tokenBucket({ limit: 1000, period: '1s', burst: 1 })
    const leaky = leakyBucket({ limit: 10, period: '1s', queue: 5 })
    const both = [...item(bucket), ...item(leaky)]
    const [first, second] = await Promise.all([timed(both), timed(both)])
    expect(second.startMs - first.decision.at).toBeGreaterThan(99)
    expect([first.decision.delayMs, second.decision.delayMs]).toEqual([0, 0])
  })

  it('ends for everybody when the engine is closed', async () => {
    const one = item(tokenBucket({ limit: 1, period: '1h' }))
    await engine.check(one)
    const waiting = engine.acquire(one, { timeoutMs: 2 * 3_600_000 })
    await engine.peek(one)
    await engine.close()
    await expect(waiting).rejects.toMatchObject({ code: 'HEADGATE_CLOSED' })
    await expect(engine.acquire(one)).rejects.toMatchObject({ code: 'HEADGATE_CLOSED' })
  })
})

describe('slots', () => {
  it('of a process that was killed come back within their ttl (apache/shenyu#6646)', async () => {
    const slots = item(concurrency({ limit: 2, ttl: '1s' }), 1, 'slots')
    const holder = await startProcess('hold')
    holder.go()
    expect(await holder.line()).toEqual({ allowed: true })
    expect((await engine.check(slots)).allowed).toBe(false)
    holder.child.kill('SIGKILL')
    await once(holder.child, 'exit')
    const { decision } = await timed(slots, { timeoutMs: 3000 })
    expect(decision.allowed).toBe(true)
    expect(decision.waitedMs).toBeLessThan(1200)
    await decision.release?.()
  })

  it('are waited for, and taken soon after they were released', async () => {
    const slots = item(concurrency({ limit: 1, ttl: '1m' }))
    const held = await engine.check(slots)
    const waiting = timed(slots)
    await sleep(150)
    const releasedMs = now()
    await held.release?.()
    const { decision, startMs } = await waiting
    expect([decision.allowed, startMs - releasedMs < 250]).toEqual([true, true])
  })

  it('whose release failed are released by asking again, or lapse', async () => {
    const slots = item(concurrency({ limit: 1, ttl: '1m' }))
    const impatient = createEngine({ store, timeoutMs: 100 })
    const held = await impatient.check(slots)
    server.pause()
    await expect(held.release?.()).rejects.toMatchObject({ code: 'HEADGATE_STORE_UNAVAILABLE' })
    server.resume()
    await held.release?.()
    await held.release?.()
    expect((await engine.check(slots)).allowed).toBe(true)
    await impatient.close()
  })
})
