import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Step, smallBuckets, steps, tokenBuckets } from '../../../../../test/limit-arbitraries.ts'
import { instantUs, inUs, statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import type { Decision } from '../../decision.ts'
import type { Limit } from '../../limit.ts'
import { tokenBucket } from './index.ts'

/**
 * The law itself, in rational numbers and with no state but the trace: whatever interval ends now, at
 * most burst + N·T/P units are admitted in it.
 */
class Law {
  private readonly admitted: { atUs: number; cost: bigint }[] = []
  private readonly n: bigint
  private readonly p: bigint
  private readonly burst: bigint

  constructor({ limit, periodUs, capacity }: Limit) {
    this.n = BigInt(limit)
    this.p = BigInt(periodUs)
    this.burst = BigInt(capacity)
  }

  allows(atUs: number, cost: number): boolean {
    let sum = BigInt(cost)
    if (sum > this.burst) return false
    for (const one of this.admitted.toReversed()) {
      sum += one.cost
      if (sum * this.p > this.burst * this.p + this.n * BigInt(atUs - one.atUs)) return false
    }
    return true
  }

  admit(atUs: number, cost: number): void {
    this.admitted.push({ atUs, cost: BigInt(cost) })
  }
}

/** What a decision says of the future, held against the law. */
function expectTruth(law: Law, limit: Limit, cost: number, decision: Decision): void {
  const nowUs = instantUs(decision)
  const { remaining, nextMs, resetAfterMs } = statusOf(decision)
  const allows = (afterMs: number, earlierUs: number, units: number) =>
    law.allows(nowUs + inUs(afterMs) - earlierUs, units)
  expect(law.allows(nowUs, remaining)).toBe(true)
  expect(law.allows(nowUs, remaining + 1)).toBe(false)
  if (remaining < limit.capacity) {
    expect([allows(nextMs, 1, remaining + 1), allows(nextMs, 0, remaining + 1)]).toEqual([false, true])
    expect([allows(resetAfterMs, 1, limit.capacity), allows(resetAfterMs, 0, limit.capacity)]).toEqual([false, true])
  } else {
    expect([nextMs, resetAfterMs]).toEqual([0, 0])
  }
  if (decision.allowed) expect(decision.retryAfterMs).toBe(0)
  else if (cost > limit.capacity) expect(decision.retryAfterMs).toBe(Number.POSITIVE_INFINITY)
  else expect([allows(decision.retryAfterMs, 1, cost), allows(decision.retryAfterMs, 0, cost)]).toEqual([false, true])
}

async function followsTheLaw(limit: Limit, trace: readonly Step[]): Promise<void> {
  const law = new Law(limit)
  const traced = traceLimit(limit)
  for (const step of trace) {
    traced.clock.advanceUs(step.waitUs(limit))
    const cost = step.cost(limit)
    const peeked = await traced.peek(cost)
    const expected = law.allows(traced.clock(), cost)
    expect(peeked.allowed).toBe(expected)
    expectTruth(law, limit, cost, peeked)
    const decision = await traced.check(cost)
    expect(decision.allowed).toBe(expected)
    if (decision.allowed) law.admit(instantUs(decision), cost)
    expectTruth(law, limit, cost, decision)
  }
}

const RUNS = { numRuns: 200 }

describe('the law of the token bucket, in any interval and for any trace', () => {
  it('holds exactly and never refuses what the law allows, from one a year to millions a second (go-redis/redis_rate#24)', async () => {
    await fc.assert(fc.asyncProperty(tokenBuckets, steps, followsTheLaw), RUNS)
  })

  it('holds on buckets of few units; waits are true to the µs, 1 µs less is refused (benwis/tower-governor#65)', async () => {
    await fc.assert(fc.asyncProperty(smallBuckets, steps, followsTheLaw), RUNS)
  })

  it('is the same at any epoch: nothing depends on absolute time (rwz/redis-gcra PR#2)', async () => {
    const epochsMs = fc.constantFrom(0, 1.7e12, 4e12)
    await fc.assert(
      fc.asyncProperty(smallBuckets, steps, epochsMs, async (limit, trace, epochMs) => {
        const [here, there] = [traceLimit(limit), traceLimit(limit, epochMs)]
        for (const step of trace) {
          for (const { clock } of [here, there]) clock.advanceUs(step.waitUs(limit))
          const [{ at, ...decision }, { at: _, ...other }] = [
            await here.check(step.cost(limit)),
            await there.check(step.cost(limit)),
          ]
          expect(other).toEqual(decision)
        }
      }),
      RUNS,
    )
  })
})

describe("a step of the store's clock", () => {
  const stepsUs = fc.integer({ min: -3_600_000_000, max: 3_600_000_000 })
  const stepping = fc.array(fc.tuple(steps, stepsUs), { minLength: 2, maxLength: 4 })

  it('gives at most one extra burst for each step forward, and nothing for a step back', async () => {
    await fc.assert(
      fc.asyncProperty(smallBuckets, stepping, async (limit, parts) => {
        const traced = traceLimit(limit)
        let admitted = 0
        let elapsedUs = 0
        let forward = 0
        for (const [trace, stepUs] of parts) {
          for (const step of trace) {
            const waitUs = step.waitUs(limit)
            elapsedUs += waitUs
            traced.clock.advanceUs(waitUs)
            const cost = step.cost(limit)
            if ((await traced.check(cost)).allowed) admitted += cost
          }
          traced.clock.advanceUs(stepUs)
          if (stepUs > 0) forward += 1
        }
        const bursts = BigInt(limit.capacity * (1 + forward)) * BigInt(limit.periodUs)
        const bound = bursts + BigInt(limit.limit) * BigInt(elapsedUs)
        expect(BigInt(admitted) * BigInt(limit.periodUs) <= bound).toBe(true)
      }),
      RUNS,
    )
  })

  it('refuses nobody for the length of a step back: the wait that the next answer names is true', async () => {
    await fc.assert(
      fc.asyncProperty(smallBuckets, steps, fc.integer({ min: 1, max: 1e15 }), async (limit, trace, stepUs) => {
        const traced = traceLimit(limit)
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(limit))
          await traced.check(step.cost(limit))
        }
        traced.clock.advanceUs(-stepUs)
        const refused = await traced.check(limit.capacity)
        if (refused.allowed) return
        expect(inUs(refused.retryAfterMs)).toBeLessThanOrEqual(limit.spanUs)
        traced.clock.advanceUs(inUs(refused.retryAfterMs))
        expect((await traced.check(limit.capacity)).allowed).toBe(true)
      }),
      RUNS,
    )
  })

  it('keeps what was used: 3 of 5, the clock 11 s back, and the next is allowed (ProfessionalWiki/MediaWiki-MCP-Server#557)', async () => {
    const traced = traceLimit(tokenBucket({ limit: 1, period: '1s', burst: 5 }))
    await traced.check(3)
    traced.clock.advance(-11_000)
    const next = await traced.check()
    expect([next.allowed, statusOf(next).remaining]).toEqual([true, 1])
    const exhausted = await traced.check(2)
    expect([exhausted.allowed, exhausted.retryAfterMs]).toEqual([false, 1000])
  })

  it('an hour forward and back again gives one extra burst at most (jhurliman/node-rate-limiter#22)', async () => {
    const traced = traceLimit(tokenBucket({ limit: 1, period: '1s', burst: 5 }))
    let admitted = 0
    const drainAll = async () => {
      while ((await traced.check()).allowed) admitted += 1
    }
    await drainAll()
    traced.clock.advance(3_600_000)
    await drainAll()
    traced.clock.advance(-3_600_000)
    await drainAll()
    expect(admitted).toBe(10)
    traced.clock.advance(1000)
    await drainAll()
    expect(admitted).toBe(11)
  })
})
