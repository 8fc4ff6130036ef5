import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../test/fresh-build.ts'
import { type RedisServer, startRedis } from '../../../test/redis.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PROCESSES = 8
const RUN_MS = 10_000
const CALLERS = 6

/** Asks for random costs of random limits until the time is over, then prints what was decided: name, at (µs), cost … */
const PROGRAM = `
import { setTimeout as sleep } from 'node:timers/promises'
import * as headgate from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-5'
const store = redisStore(new Redis(process.env.REDIS_URL, { lazyConnect: true }))
const { concurrency, createEngine, fixedWindow, leakyBucket, slidingLog, slidingWindow, tokenBucket } = headgate
const engine = createEngine({ store, timeoutMs: 5000 })
const limits = {
  token: tokenBucket({ limit: 200, period: '1s', burst: 50 }),
  leaky: leakyBucket({ limit: 200, period: '1s', queue: 20 }),
  fixed: fixedWindow({ limit: 100, period: '500ms' }),
  strict: slidingWindow({ limit: 100, period: '500ms', strict: true }),
  weighted: slidingWindow({ limit: 100, period: '500ms' }),
  log: slidingLog({ limit: 100, period: '500ms' }),
  slots: concurrency({ limit: 5, ttl: '10s' }),
}
const names = Object.keys(limits)
const log = []
const endMs = Date.now() + ${RUN_MS}
await Promise.all(Array.from({ length: ${CALLERS} }, async () => {
  while (Date.now() < endMs) {
    const name = names[Math.floor(Math.random() * names.length)]
    const cost = name === 'slots' ? 1 : 1 + Math.floor(Math.random() * 5)
    const decision = await engine.check([{ name, limit: limits[name], key: '', cost }])
    const entry = [name, Math.round(decision.at * 1000), cost, decision.allowed ? 1 : 0, Math.round(decision.delayMs * 1000), decision.source]
    log.push(entry)
    if (decision.release) {
      await sleep(Math.random() * 20)
      // Until here it was surely held, by the clock that said when it was taken.
      entry.push(Math.round((await engine.peek([{ name, limit: limits[name], key: '' }])).at * 1000))
      await decision.release()
    }
    await sleep(Math.random() * 4)
  }
}))
process.stdout.write(JSON.stringify(log))
await engine.close()
await store.close()
`

type Entry = [
  name: string,
  atUs: number,
  cost: number,
  allowed: 0 | 1,
  delayUs: number,
  source: string,
  untilUs?: number,
]

let server: RedisServer
let entries: Entry[]

beforeAll(async () => {
  assertFreshBuild()
  server = await startRedis()
  const logs = await Promise.all(Array.from({ length: PROCESSES }, runOne))
  entries = logs.flat().sort((a, b) => a[1] - b[1])
}, 60_000)

afterAll(() => server.stop())

async function runOne(): Promise<Entry[]> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, REDIS_URL: server.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
  })
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  return JSON.parse(text) as Entry[]
}

const of = (name: string, allowed: 0 | 1 = 1) => entries.filter((entry) => entry[0] === name && entry[3] === allowed)

/** Units admitted in the window of a length that begins at each admission; the most of all. */
function mostWithin(name: string, windowUs: number): number {
  const admitted = of(name)
  let most = 0
  let sum = 0
  let last = 0
  for (const [i, first] of admitted.entries()) {
    while (last < admitted.length && (admitted[last] as Entry)[1] < first[1] + windowUs)
      sum += (admitted[last++] as Entry)[2]
    most = Math.max(most, sum)
    sum -= (admitted[i] as Entry)[2]
  }
  return most
}

/** Units admitted from an instant (not with it) up to another. */
function between(name: string, fromUs: number, toUs: number): number {
  return of(name).reduce((sum, [, atUs, cost]) => (atUs > fromUs && atUs <= toUs ? sum + cost : sum), 0)
}

describe('eight processes that hammer one Redis', () => {
  it('are all decided by the store, and every limit refused and admitted', () => {
    expect([...new Set(entries.map((entry) => entry[5]))]).toSatisfy((sources: string[]) =>
      sources.every((source) => ['store', 'deny-cache'].includes(source)),
    )
    for (const name of ['token', 'leaky', 'fixed', 'strict', 'weighted', 'log', 'slots']) {
      expect([name, of(name).length > 100, of(name, 0).length > 0]).toEqual([name, true, true])
    }
  })

  it('never get more of a token bucket than burst + rate × time, in any interval', () => {
    const admitted = of('token')
    let level = 0
    let atUs = 0
    for (const [, now, cost] of admitted) {
      level = Math.max(0, level - ((now - atUs) * 200) / 1e6) + cost
      atUs = now
      expect(level).toBeLessThanOrEqual(50 + 1e-6)
    }
  })

  it('are never refused by a token bucket that has room', () => {
    const events = entries.filter(([name]) => name === 'token')
    let level = 0
    let atUs = 0
    for (const [, now, cost, allowed] of events) {
      level = Math.max(0, level - ((now - atUs) * 200) / 1e6)
      atUs = now
      if (allowed) level += cost
      // Decisions of the same µs are in no order here.
      else if (events.filter((other) => other[1] === now).length === 1) expect(level + cost).toBeGreaterThan(50 - 1e-6)
    }
  })

  it('are let through a leaky bucket one by one', () => {
    const ends = of('leaky')
      .map(([, atUs, cost, , delayUs]) => ({ end: atUs + delayUs, cost }))
      .sort((a, b) => a.end - b.end)
    for (const [i, { end, cost }] of ends.entries()) {
      if (i > 0) expect(end - (ends[i - 1] as { end: number }).end).toBeGreaterThanOrEqual(cost * 5000 - 1)
    }
  })

  it('never get more than N of a fixed window, and are never refused by one that has room', () => {
    const windows = new Map<number, number>()
    for (const [, atUs, cost] of of('fixed')) {
      const window = Math.floor(atUs / 500_000)
      windows.set(window, (windows.get(window) ?? 0) + cost)
    }
    expect(Math.max(...windows.values())).toBeLessThanOrEqual(100)
    for (const [, atUs, cost] of of('fixed', 0)) {
      expect(between('fixed', atUs - (atUs % 500_000) - 1, atUs) + cost).toBeGreaterThan(100)
    }
  })

  it('never get more than N in any window of a strict sliding window and of a sliding log', () => {
    expect(mostWithin('strict', 500_000)).toBeLessThanOrEqual(100)
    expect(mostWithin('log', 500_000)).toBeLessThanOrEqual(100)
    expect(mostWithin('weighted', 450_001)).toBeLessThanOrEqual(100)
    for (const [, atUs, cost] of of('log', 0)) {
      expect(between('log', atUs - 500_000, atUs) + cost).toBeGreaterThan(100)
    }
  })

  it('never hold more slots than there are', () => {
    const edges = of('slots').flatMap(([, atUs, , , , , untilUs = atUs]) => [
      { atUs, step: 1 },
      { atUs: untilUs, step: -1 },
    ])
    edges.sort((a, b) => a.atUs - b.atUs || a.step - b.step)
    let held = 0
    for (const { step } of edges) {
      held += step
      expect(held).toBeLessThanOrEqual(5)
    }
  })
})
