import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Admitted } from '../../../../../test/admitted.ts'
import { slidingLogs, steps } from '../../../../../test/limit-arbitraries.ts'
import { instantUs, inUs, statusOf, type TracedLimit, traceLimit } from '../../../../../test/traced-limit.ts'
import { slidingLog } from './index.ts'

const RUNS = { numRuns: 500 }

/** Peeks some µs from now, and comes back. */
async function peekIn(traced: TracedLimit, us: number, cost: number) {
  traced.clock.advanceUs(us)
  const decision = await traced.peek(cost)
  traced.clock.advanceUs(-us)
  return decision
}

describe('the law of the sliding log, for any trace, against every single charge', () => {
  it('admits at most N in any window of length P, and refuses nothing that fits (go-redis/redis_rate#24)', async () => {
    await fc.assert(
      fc.asyncProperty(slidingLogs, steps, async (limit, trace) => {
        const traced = traceLimit(limit)
        const admitted = new Admitted()
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          const cost = step.cost(limit)
          const used = admitted.within(traced.clock() - limit.periodUs + 1, traced.clock())
          const decision = await traced.check(cost)
          expect(decision.allowed).toBe(used + cost <= limit.limit)
          if (decision.allowed) admitted.add(instantUs(decision), cost)
          expect(statusOf(decision).remaining).toBe(limit.limit - used - (decision.allowed ? cost : 0))
        }
      }),
      RUNS,
    )
  })

  it('names true waits: 1 µs earlier it refuses, then it admits; and says when more is left, and when all is', async () => {
    await fc.assert(
      fc.asyncProperty(slidingLogs, steps, async (limit, trace) => {
        const traced = traceLimit(limit)
        const admitted = new Admitted()
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          const cost = step.cost(limit)
          const decision = await traced.check(cost)
          if (decision.allowed) admitted.add(instantUs(decision), cost)
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
          const lastUs = admitted.last(instantUs(decision))
          expect(inUs(resetAfterMs)).toBe(lastUs + limit.periodUs - instantUs(decision))
        }
      }),
      RUNS,
    )
  })
})

describe("a step of the store's clock", () => {
  it('back, however far, refuses nobody for longer than one period, nor lets more than one more pass', async () => {
    await fc.assert(
      fc.asyncProperty(slidingLogs, steps, fc.integer({ min: 1, max: 1e15 }), async (limit, trace, us) => {
        const traced = traceLimit(limit)
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          await traced.check(step.cost(limit))
        }
        const before = statusOf(await traced.peek(0)).remaining
        traced.clock.advanceUs(-us)
        // What had not lapsed has not after it, and what had may count again.
        expect(statusOf(await traced.peek(0)).remaining).toBeLessThanOrEqual(before)
        const all = await traced.check(limit.limit)
        if (all.allowed) return
        const waitUs = inUs(all.retryAfterMs)
        expect(waitUs).toBeLessThanOrEqual(limit.periodUs)
        traced.clock.advanceUs(waitUs)
        expect((await traced.check(limit.limit)).allowed).toBe(true)
      }),
      RUNS,
    )
  })

  it('back gathers what is from the future in one run of now, at most exhausted', async () => {
    const traced = traceLimit(slidingLog({ limit: 4, period: '10s' }), Date.UTC(2026, 0, 1))
    for (let s = 0; s < 3; s++) {
      await traced.check(1)
      traced.clock.advance(1000)
    }
    // t = 3 s, steps back to 1.5 s: the run of 2 s is one of now.
    traced.clock.advance(-1500)
    expect(await traced.check(2)).toMatchObject({ allowed: false, retryAfterMs: 8500 })
    expect(statusOf(await traced.peek(1))).toMatchObject({ remaining: 1, resetAfterMs: 10_000 })
  })
})

describe('a change of the period', () => {
  it('never blocks for longer than the old one would have, and a shorter one is effective at once', async () => {
    await fc.assert(
      fc.asyncProperty(slidingLogs, slidingLogs, steps, async (before, after, trace) => {
        const traced = traceLimit(before)
        const admitted = new Admitted()
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(before))
          const cost = step.cost(before)
          if ((await traced.check(cost)).allowed) admitted.add(traced.clock(), cost)
        }
        const nowUs = traced.clock()
        const shorter = Math.min(before.periodUs, after.periodUs)
        const used = admitted.within(nowUs - shorter + 1, nowUs)
        expect(statusOf(await traced.peek(0, after)).remaining).toBe(Math.max(0, after.limit - used))
        const last = admitted.last(nowUs)
        traced.clock.advanceUs(Math.max(0, last + shorter - nowUs))
        expect((await traced.check(after.limit, after)).allowed).toBe(true)
      }),
      RUNS,
    )
  })

  it('to a longer one holds for what comes: 1,000 a second, then one an hour', async () => {
    const traced = traceLimit(slidingLog({ limit: 1000, period: '1s' }))
    await traced.check(1000)
    const hourly = slidingLog({ limit: 1, period: '1h' })
    expect(await traced.check(1, hourly)).toMatchObject({ allowed: false, retryAfterMs: 1000 })
    traced.clock.advance(1000)
    expect((await traced.check(1, hourly)).allowed).toBe(true)
    expect((await traced.check(1, hourly)).retryAfterMs).toBe(3_600_000)
  })

  it('keeps older runs to their period, newer ones to theirs, side by side', async () => {
    const [short, long] = [slidingLog({ limit: 10, period: '10s' }), slidingLog({ limit: 10, period: '1m' })]
    const traced = traceLimit(short)
    await traced.check(4, short)
    traced.clock.advance(1000)
    await traced.check(4, long)
    expect(await traced.peek(6, long)).toMatchObject({ allowed: false, retryAfterMs: 9000 })
    expect(await traced.peek(7, long)).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
    traced.clock.advance(9000)
    expect((await traced.check(6, long)).allowed).toBe(true)
  })

  it('forgets nothing that is in the shorter of two periods, while instances of both ask in turn', async () => {
    const shortOrLong = fc.record({ long: fc.boolean(), waitMs: fc.nat(4000), cost: fc.integer({ min: 1, max: 3 }) })
    await fc.assert(
      fc.asyncProperty(fc.array(shortOrLong, { minLength: 1, maxLength: 60 }), async (asked) => {
        const [short, long] = [slidingLog({ limit: 10, period: '10s' }), slidingLog({ limit: 10, period: '1m' })]
        const traced = traceLimit(short)
        const admitted = new Admitted()
        for (const one of asked) {
          traced.clock.advance(one.waitMs)
          const decision = await traced.check(one.cost, one.long ? long : short)
          if (decision.allowed) admitted.add(traced.clock(), one.cost)
          expect(admitted.within(traced.clock() - short.periodUs + 1, traced.clock())).toBeLessThanOrEqual(10)
        }
      }),
      RUNS,
    )
  })
})
