import { describe, expect, it } from 'vitest'
import {
  concurrency,
  createEngine,
  fixedWindow,
  type Limit,
  leakyBucket,
  memoryStore,
  slidingLog,
  tokenBucket,
} from './index.ts'
import { fakeClock } from './testing/index.ts'

const tenPerSecond = tokenBucket({ limit: 10, period: '1s' })

function rig() {
  const clock = fakeClock()
  const engine = createEngine({ store: memoryStore({ clock }) })
  const item = (limit: Limit, cost = 1, key = 'ann') => [{ name: limit.algorithm, limit, key, cost }]
  return { clock, engine, item }
}

describe('giving back', () => {
  it('returns only what has not drained: a cancelled reserve is no second budget', async () => {
    const { clock, engine, item } = rig()
    const { reservation } = await engine.reserve(item(tenPerSecond, 10))
    clock.advance(1000)
    expect((await engine.check(item(tenPerSecond, 10))).allowed).toBe(true)
    clock.advance(500)
    await reservation?.cancel()
    expect((await engine.peek(item(tenPerSecond, 6))).allowed).toBe(false)
    expect((await engine.peek(item(tenPerSecond, 5))).allowed).toBe(true)
  })

  it('knows that what lies above something given back drains earlier', async () => {
    const { clock, engine, item } = rig()
    const first = await engine.check(item(tenPerSecond, 5))
    const second = await engine.check(item(tenPerSecond, 5))
    expect(await engine.refund(item(tenPerSecond, 5), { receipt: first.receipt as string })).toEqual([5])
    clock.advance(500)
    expect((await engine.check(item(tenPerSecond, 10))).allowed).toBe(true)
    // By its receipt the second would drain until 1 s; in truth it had by 0.5 s.
    expect(await engine.refund(item(tenPerSecond, 5), { receipt: second.receipt as string })).toEqual([0])
    expect((await engine.check(item(tenPerSecond))).allowed).toBe(false)
  })

  it('keeps concurrent holds apart: all of them come back whole', async () => {
    const { engine, item, clock } = rig()
    const threeAnHour = tokenBucket({ limit: 3, period: '1h' })
    for (let round = 0; round < 20; round++) {
      const [a, b] = [await engine.reserve(item(threeAnHour)), await engine.reserve(item(threeAnHour))]
      clock.advance(10)
      await a.reservation?.cancel()
      await b.reservation?.cancel()
      clock.advance(1000)
      expect((await engine.peek(item(threeAnHour, 2))).allowed).toBe(true)
    }
  })

  it('returns nothing once the window has closed', async () => {
    const { clock, engine, item } = rig()
    const window = fixedWindow({ limit: 5, period: '10s' })
    const { receipt } = await engine.check(item(window, 5))
    clock.advance(10_000)
    await engine.check(item(window, 5))
    expect(await engine.refund(item(window, 5), { receipt: receipt as string })).toEqual([0])
    expect((await engine.check(item(window))).allowed).toBe(false)
  })

  it('without a receipt is a credit, never above full; the same id once', async () => {
    const { engine, item } = rig()
    await engine.check(item(tenPerSecond, 10))
    expect(await engine.refund(item(tenPerSecond, 3), { id: 'ticket 1' })).toEqual([3])
    expect(await engine.refund(item(tenPerSecond, 3), { id: 'ticket 1' })).toEqual([0])
    expect(await engine.refund(item(tenPerSecond, 100), { id: 'ticket 2' })).toEqual([7])
    expect((await engine.peek(item(tenPerSecond, 10))).allowed).toBe(true)
  })
})

describe('a reservation', () => {
  it('charges what was used: less gives back, more is a debt of at most one full budget', async () => {
    const { engine, item } = rig()
    const less = await engine.reserve(item(tenPerSecond, 6))
    expect(await less.reservation?.commit(2)).toEqual({ late: false, unpaid: false })
    expect((await engine.peek(item(tenPerSecond))).limits[0]?.remaining).toBe(8)
    const more = await engine.reserve(item(tenPerSecond, 1))
    expect(await more.reservation?.commit(30)).toEqual({ late: false, unpaid: true })
    const refused = await engine.check(item(tenPerSecond))
    expect([refused.allowed, refused.retryAfterMs]).toEqual([false, 1100])
  })

  it('is settled once, whoever repeats it, and taken once under one id', async () => {
    const { engine, item } = rig()
    const left = async () => (await engine.peek(item(tenPerSecond))).limits[0]?.remaining
    await engine.reserve(item(tenPerSecond, 4), { id: 'a' })
    expect((await engine.reserve(item(tenPerSecond, 4), { id: 'a' })).allowed).toBe(true)
    expect(await left()).toBe(6)
    const other = engine.reservation(item(tenPerSecond, 4), 'a')
    await other.commit(3)
    await other.commit(3)
    await other.cancel()
    expect([await left(), await other.extend(1000)]).toEqual([7, false])
  })

  it('lapses by itself and comes back; a late commit charges anew and says so', async () => {
    const { clock, engine, item } = rig()
    const hourly = tokenBucket({ limit: 10, period: '1h' })
    const { reservation } = await engine.reserve(item(hourly, 8), { holdMs: 1000 })
    clock.advance(999)
    expect((await engine.check(item(hourly, 3))).allowed).toBe(false)
    expect(await reservation?.extend(1000)).toBe(true)
    clock.advance(1001)
    expect((await engine.peek(item(hourly, 9))).allowed).toBe(true)
    clock.advance(1000)
    expect(await reservation?.commit()).toEqual({ late: true, unpaid: false })
    expect((await engine.peek(item(hourly))).limits[0]?.remaining).toBe(2)
  })

  it('is all or nothing over several limits of several algorithms', async () => {
    const { engine } = rig()
    const log = slidingLog({ limit: 5, period: '1m' })
    const items = (cost: number) => [
      { name: 'a', limit: tenPerSecond, key: 'ann', cost },
      { name: 'b', limit: log, key: 'ann', cost },
    ]
    expect((await engine.reserve(items(6))).allowed).toBe(false)
    const { reservation } = await engine.reserve(items(5))
    expect((await engine.peek(items(1))).limits.map(({ remaining }) => remaining)).toEqual([5, 0])
    await reservation?.commit(1)
    expect((await engine.peek(items(1))).limits.map(({ remaining }) => remaining)).toEqual([9, 4])
  })

  it('refuses slots, and ids and spans that are none', async () => {
    const { engine, item } = rig()
    const slots = item(concurrency({ limit: 1 }))
    await expect(engine.reserve(slots)).rejects.toThrow(/slots of "concurrency"/)
    await expect(engine.reserve(item(tenPerSecond), { id: '' })).rejects.toThrow(/^id: /)
    for (const holdMs of [0, -1, Number.NaN, 1e18]) {
      await expect(engine.reserve(item(tenPerSecond), { holdMs })).rejects.toThrow(/^holdMs: /)
    }
    for (const receipt of ['', 'r1', 'r1.x', 'r1.a.1-1.1-1', 'r1.!.1-1', 'r2.a.1-1'])
      await expect(engine.refund(item(tenPerSecond), { receipt })).rejects.toThrow(/^receipt: /)
    expect((await engine.peek(item(tenPerSecond, 10))).allowed).toBe(true)
  })
})

describe('take up to', () => {
  it('grants what all limits can give, from 0 to what was asked', async () => {
    const { engine } = rig()
    const items = [
      { name: 'a', limit: tenPerSecond, key: '' },
      { name: 'b', limit: fixedWindow({ limit: 4, period: '1m' }), key: '' },
    ]
    expect((await engine.takeUpTo(items, 3)).granted).toBe(3)
    const { granted, decision } = await engine.takeUpTo(items, 100)
    expect(granted).toBe(1)
    expect(await engine.refund(items, { receipt: decision.receipt as string })).toEqual([1, 1])
    expect((await engine.takeUpTo(items, 100)).granted).toBe(1)
    const none = await engine.takeUpTo(items, 100)
    expect([none.granted, none.decision.allowed, none.decision.limitedBy]).toEqual([0, false, 'b'])
    for (const most of [0, -1, 0.5, Number.NaN]) await expect(engine.takeUpTo(items, most)).rejects.toThrow()
  })
})

describe('a block', () => {
  it('outlives resets and windows, and ends only by its time or unblock', async () => {
    const { clock, engine, item } = rig()
    await engine.block(item(tenPerSecond), { durationMs: 30_000 })
    await engine.reset(item(tenPerSecond))
    const blocked = await engine.check(item(tenPerSecond))
    expect([blocked.reason, blocked.retryAfterMs, blocked.limitedBy]).toEqual(['blocked', 30_000, 'token-bucket'])
    clock.advance(29_999.999)
    expect((await engine.check(item(tenPerSecond))).reason).toBe('blocked')
    clock.advance(0.001)
    expect((await engine.check(item(tenPerSecond))).allowed).toBe(true)
    await engine.block(item(tenPerSecond))
    clock.advance(90 * 86_400_000)
    expect((await engine.check(item(tenPerSecond))).reason).toBe('blocked')
    expect([await engine.unblock(item(tenPerSecond)), await engine.unblock(item(tenPerSecond))]).toEqual([true, false])
    expect((await engine.check(item(tenPerSecond))).allowed).toBe(true)
  })
})

it('a refusal names the block also where the limit itself has room only after it', async () => {
  const { engine, item } = rig()
  const hourly = fixedWindow({ limit: 1, period: '1h', align: 'first-hit' })
  await engine.check(item(hourly))
  await engine.block(item(hourly), { durationMs: 1000 })
  const { reason, retryAfterMs } = await engine.check(item(hourly))
  expect([reason, retryAfterMs]).toEqual(['blocked', 3_600_000])
  const never = await engine.check(item(hourly, 2))
  expect([never.reason, never.retryAfterMs]).toEqual(['never', Number.POSITIVE_INFINITY])
})

describe('slots', () => {
  it('are released once; a holder whose slot has lapsed is told', async () => {
    const { clock, engine, item } = rig()
    const one = concurrency({ limit: 1, ttl: '10s' })
    const first = await engine.check(item(one))
    expect((await engine.check(item(one))).allowed).toBe(false)
    clock.advance(9000)
    expect(await first.renew?.()).toBe(true)
    clock.advance(9000)
    expect((await engine.check(item(one))).allowed).toBe(false)
    clock.advance(1000)
    const second = await engine.check(item(one))
    expect([second.allowed, await first.renew?.()]).toEqual([true, false])
    await first.release?.()
    expect((await engine.check(item(one))).allowed).toBe(false)
    await second.release?.()
    await second.release?.()
    expect((await engine.check(item(one))).allowed).toBe(true)
  })
})

describe('a place in line', () => {
  it('is given back when the limiter closes', async () => {
    const store = memoryStore({ clock: fakeClock() })
    const one = tokenBucket({ limit: 1, period: '1h' })
    const item = [{ name: 'one', limit: one, key: '' }]
    const [waits, stays] = [createEngine({ store }), createEngine({ store })]
    await stays.check(item)
    const waiting = waits.acquire(item, { timeoutMs: 10_000_000 }).catch((error: unknown) => error)
    const closing = waits.close()
    expect(await waiting).toMatchObject({ code: 'HEADGATE_CLOSED' })
    await closing
    expect((await stays.peek(item)).retryAfterMs).toBe(3_600_000)
  })

  it('lets a leaky bucket shape also where another limit has no line', async () => {
    const { engine } = rig()
    const items = [
      { name: 'leaky', limit: leakyBucket({ limit: 20, period: '1s', queue: 5 }), key: '' },
      { name: 'log', limit: slidingLog({ limit: 100, period: '1s' }), key: '' },
    ]
    await engine.acquire(items)
    const beganMs = performance.now()
    expect(await engine.acquire(items)).toMatchObject({ allowed: true, delayMs: 0 })
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(49)
  })

  it('that is given back by another than the last is not given to a second caller', async () => {
    const { engine, item } = rig()
    const one = tokenBucket({ limit: 1, period: '1s' })
    const leaving = new AbortController()
    const waited = [engine.acquire(item(one)), engine.acquire(item(one), { signal: leaving.signal })]
    const third = engine.acquire(item(one))
    leaving.abort(new Error('gone'))
    await expect(waited[1]).rejects.toThrow('gone')
    const next = await engine.acquire(item(one), { timeoutMs: 2500 })
    expect([next.allowed, next.reason]).toEqual([false, 'limit'])
    await engine.close()
    await expect(third).rejects.toThrow(/closed/)
  })

  it('is refused at once where it comes too late, and where it never comes', async () => {
    const { engine, item } = rig()
    await engine.check(item(tenPerSecond, 10))
    const late = await engine.acquire(item(tenPerSecond, 5), { timeoutMs: 499 })
    expect([late.allowed, late.retryAfterMs]).toEqual([false, 500])
    const never = await engine.acquire(item(tenPerSecond, 11))
    expect([never.allowed, never.reason]).toEqual([false, 'never'])
    const slow = leakyBucket({ limit: 1, period: '1h', queue: 3 })
    await engine.check(item(slow))
    expect(await engine.acquire(item(slow), { timeoutMs: 1000 })).toMatchObject({
      allowed: false,
      reason: 'limit',
      retryAfterMs: 3_600_000,
    })
  })
})
