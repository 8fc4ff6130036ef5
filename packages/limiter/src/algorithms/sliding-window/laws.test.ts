import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Admitted } from '../../../../../test/admitted.ts'
import { type Step, slidingWindows, steps } from '../../../../../test/limit-arbitraries.ts'
import { instantUs, inUs, statusOf, type TracedLimit, traceLimit } from '../../../../../test/traced-limit.ts'
import type { Limit } from '../../limit.ts'
import { slidingWindow } from './index.ts'

const sliceOf = (limit: Limit) => limit.wire[3] as number
const isStrict = (limit: Limit) => limit.wire[4] === 1
const RUNS = { numRuns: 500 }

/** What a window of slices must count, worked out from every single charge. */
function naiveUsed(limit: Limit, admitted: Admitted, nowUs: number): number {
  const { periodUs } = limit
  const sliceUs = sliceOf(limit)
  const oldest = Math.floor((nowUs - periodUs + 1) / sliceUs)
  const nextUs = (oldest + 1) * sliceUs
  const count = admitted.within(oldest * sliceUs, nextUs - 1)
  // How many µs of the oldest slice lie in the window.
  const part = Math.min(sliceUs, nextUs - 1 - (nowUs - periodUs))
  const [c, p, d] = [BigInt(count), BigInt(part), BigInt(sliceUs)]
  const counted = isStrict(limit) ? count : Number((c * p + d - 1n) / d)
  return counted + admitted.within(nextUs, nowUs)
}

/** Runs a trace. `each` sees every check with what was admitted up to it, itself included. */
async function run(
  limit: Limit,
  trace: readonly Step[],
  each: (admitted: Admitted, allowed: boolean, cost: number, nowUs: number) => void,
): Promise<void> {
  const traced = traceLimit(limit)
  const admitted = new Admitted()
  for (const step of trace) {
    traced.clock.advanceUs(step.waitUs(limit))
    const cost = step.cost(limit)
    const decision = await traced.check(cost)
    const nowUs = instantUs(decision)
    if (decision.allowed) admitted.add(nowUs, cost)
    each(admitted, decision.allowed, cost, nowUs)
  }
}

/** Peeks some µs from now, and comes back. */
async function peekIn(traced: TracedLimit, us: number, cost: number) {
  traced.clock.advanceUs(us)
  const decision = await traced.peek(cost)
  traced.clock.advanceUs(-us)
  return decision
}

describe('the law of the sliding window, for any trace, against every single charge', () => {
  it('counts the whole slices and the part of the oldest one, to the unit', async () => {
    await fc.assert(
      fc.asyncProperty(slidingWindows, steps, async (limit, trace) => {
        const traced = traceLimit(limit)
        const admitted = new Admitted()
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          const cost = step.cost(limit)
          const used = naiveUsed(limit, admitted, traced.clock())
          const decision = await traced.check(cost)
          expect([decision.allowed, cost]).toEqual([used + cost <= limit.limit, cost])
          if (decision.allowed) admitted.add(instantUs(decision), cost)
          expect(statusOf(decision).remaining).toBe(limit.limit - used - (decision.allowed ? cost : 0))
        }
      }),
      RUNS,
    )
  })

  it('strict: at most N in any window of length P (go-redis/redis_rate#24)', async () => {
    await fc.assert(
      fc.asyncProperty(slidingWindows.filter(isStrict), steps, (limit, trace) =>
        run(limit, trace, (admitted, _allowed, _cost, nowUs) => {
          expect(admitted.within(nowUs - limit.periodUs + 1, nowUs)).toBeLessThanOrEqual(limit.limit)
        }),
      ),
      RUNS,
    )
  })

  it('weighted: at most N in any window of (slices − 1)/slices · P, at most N + the lapsed part of a slice in P', async () => {
    await fc.assert(
      fc.asyncProperty(
        slidingWindows.filter((limit) => !isStrict(limit)),
        steps,
        (limit, trace) =>
          run(limit, trace, (admitted, allowed, cost, nowUs) => {
            if (!allowed || cost === 0) return
            const { periodUs, limit: n } = limit
            const sliceUs = sliceOf(limit)
            // A window of P − d + 1 µs is no shorter than (slices − 1)/slices of P.
            expect(admitted.within(nowUs - (periodUs - sliceUs), nowUs)).toBeLessThanOrEqual(n)
            const inPeriod = admitted.within(nowUs - periodUs + 1, nowUs)
            const oldest = Math.floor((nowUs - periodUs + 1) / sliceUs)
            const count = admitted.within(oldest * sliceUs, (oldest + 1) * sliceUs - 1)
            const lapsedUs = Math.max(0, nowUs - periodUs + 1 - oldest * sliceUs)
            const beyond = Number((BigInt(count) * BigInt(lapsedUs)) / BigInt(sliceUs))
            expect(inPeriod).toBeLessThanOrEqual(n + beyond)
            expect(inPeriod).toBeLessThan(2 * n)
          }),
      ),
      RUNS,
    )
  })

  it('never refuses what the last P + d leaves room for', async () => {
    await fc.assert(
      fc.asyncProperty(slidingWindows, steps, (limit, trace) =>
        run(limit, trace, (admitted, allowed, cost, nowUs) => {
          if (allowed || cost > limit.limit) return
          const fromUs = nowUs - limit.periodUs - sliceOf(limit) + 2
          expect(admitted.within(fromUs, nowUs) + cost).toBeGreaterThan(limit.limit)
        }),
      ),
      RUNS,
    )
  })

  it('names true waits: 1 µs earlier it refuses, then it admits; and says when more is left, and when all is', async () => {
    await fc.assert(
      fc.asyncProperty(slidingWindows, steps, async (limit, trace) => {
        const traced = traceLimit(limit)
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          const cost = step.cost(limit)
          const decision = await traced.check(cost)
          const { remaining, nextMs, resetAfterMs } = statusOf(decision)
          if (!decision.allowed && cost <= limit.limit) {
            const waitUs = inUs(decision.retryAfterMs)
            const early = await peekIn(traced, waitUs - 1, cost)
            expect([early.allowed, inUs(early.retryAfterMs)]).toEqual([false, 1])
            expect((await peekIn(traced, waitUs, cost)).allowed).toBe(true)
          }
          if (remaining === limit.limit) {
            expect([nextMs, resetAfterMs]).toEqual([0, 0])
            continue
          }
          const leftIn = async (us: number) => statusOf(await peekIn(traced, us, 0)).remaining
          expect(await leftIn(inUs(nextMs) - 1)).toBe(remaining)
          expect(await leftIn(inUs(nextMs))).toBeGreaterThan(remaining)
          expect(await leftIn(inUs(resetAfterMs) - 1)).toBeLessThan(limit.limit)
          expect(await leftIn(inUs(resetAfterMs))).toBe(limit.limit)
        }
      }),
      RUNS,
    )
  })

  it('reaches its bound: almost twice N in a period, where a slice takes all of it at its end', async () => {
    const traced = traceLimit(slidingWindow({ limit: 1000, period: '10s' }), Date.UTC(2026, 0, 1))
    traced.clock.advanceUs(-1)
    expect((await traced.check(1000)).allowed).toBe(true)
    traced.clock.advanceUs(10_000_000 - 1000)
    // 1 ms of the slice's second is still in the window.
    expect(statusOf(await traced.peek(0)).remaining).toBe(999)
    expect((await traced.check(999)).allowed).toBe(true)
  })
})

describe("a step of the store's clock", () => {
  it('back, however far, refuses nobody for longer than one window, and lets at most one more window pass', async () => {
    await fc.assert(
      fc.asyncProperty(slidingWindows, steps, fc.integer({ min: 1, max: 1e15 }), async (limit, trace, us) => {
        const traced = traceLimit(limit)
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          await traced.check(step.cost(limit))
        }
        const before = statusOf(await traced.peek(0)).remaining
        traced.clock.advanceUs(-us)
        const first = await traced.check(1)
        if (before === 0 && first.allowed) expect(us).toBeGreaterThan(0)
        const all = await traced.check(limit.limit)
        const waitUs = inUs(all.retryAfterMs)
        expect(waitUs).toBeLessThanOrEqual(limit.spanUs)
        traced.clock.advanceUs(waitUs)
        expect((await traced.check(limit.limit)).allowed).toBe(true)
      }),
      RUNS,
    )
  })

  it('leaves an exhausted window exhausted, at most', async () => {
    const limit = slidingWindow({ limit: 10, period: '10s', strict: true })
    const traced = traceLimit(limit, Date.UTC(2026, 0, 1))
    for (let s = 0; s < 10; s++) {
      await traced.check(1)
      traced.clock.advance(1000)
    }
    traced.clock.advance(-3_600_000)
    // The newest charge moves to now, the others keep their distance from it.
    expect(await traced.check(1)).toMatchObject({ allowed: false, retryAfterMs: 1999.999 })
    traced.clock.advance(1999.999)
    expect((await traced.check(1)).allowed).toBe(true)
  })
})

describe('a change of numbers', () => {
  it('never blocks for longer than the old window would have', async () => {
    await fc.assert(
      fc.asyncProperty(slidingWindows, slidingWindows, steps, async (before, after, trace) => {
        const traced = traceLimit(before)
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(before))
          await traced.check(step.cost(before))
        }
        const { resetAfterMs } = statusOf(await traced.peek(0))
        const decision = await traced.peek(after.limit, after)
        if (!decision.allowed) expect(decision.retryAfterMs).toBeLessThanOrEqual(resetAfterMs)
        traced.clock.advanceUs(inUs(resetAfterMs))
        expect((await traced.check(after.limit, after)).allowed).toBe(true)
      }),
      RUNS,
    )
  })

  it('of the limit keeps the counts: 80 of 100, then 50: refused until enough has lapsed; then 200: 120 are left', async () => {
    const of = (limit: number) => slidingWindow({ limit, period: '1m', slices: 6 })
    const traced = traceLimit(of(100), Date.UTC(2026, 0, 1))
    await traced.check(80)
    expect(await traced.peek(1, of(50))).toMatchObject({ allowed: false, limits: [{ remaining: 0 }] })
    expect(statusOf(await traced.peek(1, of(200))).remaining).toBe(120)
    // 31 of 80 have to lapse: 31/80 of the slice's 10 s, after a minute, to the µs.
    expect((await traced.peek(1, of(50))).retryAfterMs).toBe(60_000 + 3875 - 0.001)
  })

  it('of the period never holds back for longer: 1,000 a second, then one an hour', async () => {
    const traced = traceLimit(slidingWindow({ limit: 1000, period: '1s' }), Date.UTC(2026, 0, 1))
    await traced.check(1000)
    const hourly = slidingWindow({ limit: 1, period: '1h' })
    const refused = await traced.check(1, hourly)
    expect(refused.allowed).toBe(false)
    expect(refused.retryAfterMs).toBeLessThanOrEqual(1100)
    traced.clock.advance(refused.retryAfterMs)
    expect((await traced.check(1, hourly)).allowed).toBe(true)
  })

  it('of the slices, or to a period that is a little longer, holds nobody back who would not have been', async () => {
    const of = (period: string, slices: number) => slidingWindow({ limit: 100, period, slices })
    const traced = traceLimit(of('1m', 10), Date.UTC(2026, 0, 1))
    for (let s = 0; s < 60; s++) {
      await traced.check(1)
      traced.clock.advance(1000)
    }
    for (const [period, slices] of [
      ['1m', 20],
      ['90s', 10],
      ['1m', 10],
    ] as const) {
      for (let s = 0; s < 60; s++) {
        expect((await traced.check(1, of(period, slices))).allowed).toBe(true)
        traced.clock.advance(1000)
      }
    }
  })

  it('forgets nothing that is in the shorter of two periods, while instances of both ask in turn', async () => {
    const asked = fc.record({ other: fc.nat(2), waitMs: fc.nat(4000), cost: fc.integer({ min: 1, max: 3 }) })
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 1, maxLength: 60 }), async (steps) => {
        const limits = ['10s', '15s', '1m'].map((period) => slidingWindow({ limit: 10, period, strict: true }))
        const traced = traceLimit(limits[0] as Limit)
        const admitted = new Admitted()
        for (const { other, waitMs, cost } of steps) {
          traced.clock.advance(waitMs)
          const decision = await traced.check(cost, limits[other])
          if (decision.allowed) admitted.add(traced.clock(), cost)
          expect(admitted.within(traced.clock() - 10_000_000 + 1, traced.clock())).toBeLessThanOrEqual(10)
          expect(inUs(decision.retryAfterMs)).toBeLessThanOrEqual(66_000_000)
        }
      }),
      RUNS,
    )
  })

  it('to a shorter period is effective at once, and stays so for who was refused', async () => {
    const yearly = slidingWindow({ limit: 10, period: '365d', slices: 12 })
    const traced = traceLimit(yearly, Date.UTC(2026, 0, 1))
    await traced.check(10)
    const secondly = slidingWindow({ limit: 10, period: '1s' })
    const refused = await traced.check(1, secondly)
    expect(refused.retryAfterMs).toBeLessThanOrEqual(1100)
    // The refusal wrote it down: the year's numbers come back to what a second holds.
    traced.clock.advance(1100)
    expect((await traced.check(10, yearly)).allowed).toBe(true)
  })
})
