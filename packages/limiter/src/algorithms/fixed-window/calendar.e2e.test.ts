import { createEngine, type Decision, fixedWindow, type Limit } from 'headgate'
import { redisStore } from 'headgate/redis'
import { fakeClock, redisStoreOnClock } from 'headgate/testing'
import { Redis } from 'ioredis-5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../../../../test/redis.ts'

const HOUR_MS = 3_600_000
const daily = (limit: number, timeZone = 'UTC') => fixedWindow({ limit, period: 'day', align: 'calendar', timeZone })

let server: RedisServer
let redis: Redis
const opened: { close(): Promise<void> }[] = []

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})

beforeEach(() => redis.flushall())

afterEach(async () => {
  vi.useRealTimers()
  for (const one of opened.splice(0).reverse()) await one.close()
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

function open(clock?: () => number) {
  const client = new Redis(server.url, { lazyConnect: true })
  const store = clock === undefined ? redisStore(client) : redisStoreOnClock(client, clock)
  const engine = createEngine({ store, timeoutMs: 10_000 })
  opened.push(store, engine)
  return (limit: Limit, cost = 1, key = 'ann'): Promise<Decision> =>
    engine.check([{ rule: 'r', name: 'daily', limit, key, cost }])
}

/** What a caller is told of the day's end, and how much is left. */
function told({ at, source, limits: [status] }: Decision): [ends: number, left: number, source: string] {
  return [Math.round(at + (status?.resetAfterMs ?? 0)), status?.remaining ?? -1, source]
}

/** How often the script was called. */
async function calls(): Promise<number> {
  const stats = await redis.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

describe('callers whose own clocks are hours off', () => {
  it('agree on the window, which is that of the clock of Redis', async () => {
    const [seconds] = await redis.time()
    const day = 24 * HOUR_MS
    const ends = (Math.floor((Number(seconds) * 1000 + 8 * HOUR_MS) / day) + 1) * day - 8 * HOUR_MS
    const limit = daily(10, 'Asia/Shanghai')
    const answers: unknown[] = []
    for (const offHours of [0, 7, -30, 24 * 400]) {
      vi.useFakeTimers({ toFake: ['Date'], now: Number(seconds) * 1000 + offHours * HOUR_MS })
      answers.push(told(await open()(limit)))
      vi.useRealTimers()
    }
    expect(answers).toEqual([9, 8, 7, 6].map((left) => [ends, left, 'store']))
  })

  it('leave a window that is open its end where their zone data says another', async () => {
    const clock = fakeClock(Date.parse('2026-11-30T15:59:59Z'))
    const [one, other] = [open(clock), open(clock)]
    const ends = Date.parse('2026-12-01T00:00Z')
    expect(told(await one(daily(5)))).toEqual([ends, 4, 'store'])
    // A new day in Shanghai.
    clock.advance(2000)
    expect(told(await other(daily(5, 'Asia/Shanghai')))).toEqual([ends, 3, 'store'])
    expect(told(await one(daily(5)))).toEqual([ends, 2, 'store'])
  })
})

describe('a day that ends while a check is on its way', () => {
  it('has the check asked again with the new window, once, and charged once', async () => {
    const clock = fakeClock(Date.parse('2026-11-29T23:59:55Z'))
    const check = open(clock)
    expect(told(await check(daily(200), 3))).toEqual([Date.parse('2026-11-30T00:00Z'), 197, 'store'])
    const before = await calls()
    // The store believes that it is five seconds to midnight still.
    clock.advance(5000)
    const limit = daily(200)
    const decisions = await Promise.all(Array.from({ length: 100 }, () => check(limit)))
    expect(await calls()).toBe(before + 2)
    const ends = Date.parse('2026-12-01T00:00Z')
    expect(decisions.map(told)).toEqual(decisions.map((_, i) => [ends, 199 - i, 'store']))
    expect(await calls()).toBe(before + 2)
    expect(told(await check(limit))).toEqual([ends, 99, 'store'])
    expect(await calls()).toBe(before + 3)
  })

  it('neither ends early nor late: at the instant itself, in µs', async () => {
    const midnightUs = Date.parse('2026-11-30T00:00Z') * 1000
    const clock = fakeClock()
    const check = open(clock)
    const limit = daily(1)
    const allowed: boolean[] = []
    for (const us of [midnightUs - 1, midnightUs - 1, midnightUs, midnightUs, midnightUs + 24 * HOUR_MS * 1000 - 1]) {
      clock.setUs(us)
      allowed.push((await check(limit)).allowed)
    }
    expect(allowed).toEqual([true, false, true, false, false])
  })

  it('leaves a key that expires with its window', async () => {
    await open()(fixedWindow({ limit: 2, period: 'year', align: 'calendar' }))
    const [seconds] = await redis.time()
    const ends = Date.UTC(new Date(Number(seconds) * 1000).getUTCFullYear() + 1, 0, 1)
    const [key = ''] = await redis.keys('*')
    expect(Math.abs(Number(await redis.call('PEXPIRETIME', key)) - ends)).toBeLessThan(5)
  })
})
