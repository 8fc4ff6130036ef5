import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { calendars, fixedWindows, type Step, steps } from '../../../../../test/limit-arbitraries.ts'
import { instantUs, inUs, statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import type { Decision } from '../../decision.ts'
import type { Limit } from '../../limit.ts'
import { fixedWindow } from './index.ts'

const firstHit = (limit: Limit) => limit.wire[3] === 1

const isCalendar = (limit: Limit) => limit.wire[3] === 2

/** What the script is told. Where it lies is for `calendar.test.ts`. */
function calendarWindow(limit: Limit, atUs: number): [fromUs: number, toUs: number] {
  return limit.wireAt?.(atUs).slice(4) as [number, number]
}

/** The law itself: where the windows lie, and what was admitted in the one that is open. */
class Law {
  private beginUs = Number.NEGATIVE_INFINITY
  private used = 0
  private readonly limit: Limit

  constructor(limit: Limit) {
    this.limit = limit
  }

  /** When the window that is open at `atUs` began. */
  private begin(atUs: number): number {
    const { periodUs } = this.limit
    if (isCalendar(this.limit)) return calendarWindow(this.limit, atUs)[0]
    if (!firstHit(this.limit)) return Math.floor(atUs / periodUs) * periodUs
    return atUs < this.beginUs + periodUs ? this.beginUs : atUs
  }

  usedAt(atUs: number): number {
    return this.begin(atUs) === this.beginUs ? this.used : 0
  }

  endUs(atUs: number): number {
    if (isCalendar(this.limit)) return calendarWindow(this.limit, atUs)[1]
    return this.begin(atUs) + this.limit.periodUs
  }

  allows(atUs: number, cost: number): boolean {
    return this.usedAt(atUs) + cost <= this.limit.limit
  }

  admit(atUs: number, cost: number): void {
    this.used = this.usedAt(atUs) + cost
    if (cost > 0) this.beginUs = this.begin(atUs)
  }
}

function expectTruth(law: Law, limit: Limit, cost: number, decision: Decision): void {
  const nowUs = instantUs(decision)
  const { remaining, nextMs, resetAfterMs } = statusOf(decision)
  const leftUs = law.usedAt(nowUs) === 0 ? 0 : law.endUs(nowUs) - nowUs
  expect(remaining).toBe(limit.limit - law.usedAt(nowUs))
  expect([inUs(nextMs), inUs(resetAfterMs)]).toEqual([leftUs, leftUs])
  if (decision.allowed) expect(decision.retryAfterMs).toBe(0)
  else if (cost > limit.limit) expect(decision.retryAfterMs).toBe(Number.POSITIVE_INFINITY)
  else {
    const laterUs = nowUs + inUs(decision.retryAfterMs)
    expect([law.allows(laterUs - 1, cost), law.allows(laterUs, cost)]).toEqual([false, true])
  }
}

async function followsTheLaw(limit: Limit, trace: readonly Step[]): Promise<void> {
  const law = new Law(limit)
  const traced = traceLimit(limit)
  for (const step of trace) {
    traced.clock.advanceUs(step.waitUs(limit))
    const cost = step.cost(limit)
    const expected = law.allows(traced.clock(), cost)
    const peeked = await traced.peek(cost)
    expect(peeked.allowed).toBe(expected)
    expectTruth(law, limit, cost, peeked)
    const decision = await traced.check(cost)
    expect(decision.allowed).toBe(expected)
    if (decision.allowed) law.admit(instantUs(decision), cost)
    expectTruth(law, limit, cost, decision)
  }
}

const RUNS = { numRuns: 400 }

describe('the law of the fixed window, for any trace', () => {
  it('admits at most N a window, refuses nothing that fits, and names true waits; windows never move while open', async () => {
    await fc.assert(fc.asyncProperty(fixedWindows, steps, followsTheLaw), RUNS)
    await fc.assert(fc.asyncProperty(calendars, steps, followsTheLaw), RUNS)
  })

  it('admits at most 2 N in any span of one period (redis/redis_rate#24 and its kind: state the bound)', async () => {
    await fc.assert(
      fc.asyncProperty(fixedWindows, steps, async (limit, trace) => {
        const traced = traceLimit(limit)
        const admitted: { atUs: number; cost: number }[] = []
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          const cost = step.cost(limit)
          const decision = await traced.check(cost)
          if (decision.allowed) admitted.push({ atUs: instantUs(decision), cost })
        }
        for (const { atUs } of admitted) {
          const inSpan = admitted.filter((one) => one.atUs >= atUs && one.atUs < atUs + limit.periodUs)
          expect(inSpan.reduce((sum, one) => sum + one.cost, 0)).toBeLessThanOrEqual(2 * limit.limit)
        }
      }),
      RUNS,
    )
  })

  it('keeps its end while a caller keeps calling: one every 3 s under 5 in 10 s, all allowed (apache/shenyu#6649)', async () => {
    const traced = traceLimit(fixedWindow({ limit: 5, period: '10s' }))
    for (let s = 0; s < 60; s += 3) {
      expect((await traced.check()).allowed).toBe(true)
      traced.clock.advance(3000)
    }
  })
})

describe("a step of the store's clock", () => {
  const stepUs = fc.integer({ min: -1e14, max: 1e14 })

  it('leaves an open window its count, and ends it at most one period from now', async () => {
    await fc.assert(
      fc.asyncProperty(fixedWindows, stepUs, async (limit, us) => {
        const traced = traceLimit(limit)
        await traced.check(limit.limit)
        traced.clock.advanceUs(us)
        const next = await traced.check()
        if (next.allowed) {
          expect(us).toBeGreaterThan(0)
          return
        }
        expect(inUs(next.retryAfterMs)).toBeLessThanOrEqual(limit.periodUs)
        traced.clock.advanceUs(inUs(next.retryAfterMs) - 1)
        expect((await traced.check()).allowed).toBe(false)
        traced.clock.advanceUs(1)
        expect((await traced.check()).allowed).toBe(true)
      }),
      RUNS,
    )
  })

  it('gives at most one extra window each way, however far it goes', async () => {
    await fc.assert(
      fc.asyncProperty(fixedWindows, fc.array(stepUs, { maxLength: 6 }), async (limit, us) => {
        const traced = traceLimit(limit)
        let admitted = 0
        for (const one of [0, ...us]) {
          traced.clock.advanceUs(one)
          if ((await traced.check(limit.limit)).allowed) admitted += 1
        }
        expect(admitted).toBeLessThanOrEqual(1 + us.filter((one) => one > 0).length)
      }),
      RUNS,
    )
  })
})
