import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  calendars,
  fixedWindows,
  leakyBuckets,
  slidingLogs,
  slidingWindows,
  smallBuckets,
  steps,
} from '../../../../test/limit-arbitraries.ts'
import { inUs, statusOf, traceLimit } from '../../../../test/traced-limit.ts'
import { fixedWindow } from './fixed-window/index.ts'
import { tokenBucket } from './token-bucket/index.ts'

const anyLimit = fc.oneof(smallBuckets, fixedWindows, leakyBuckets, calendars, slidingWindows, slidingLogs)

describe('a refusal after any change of numbers or of algorithm', () => {
  it('names the true wait: then the cost is admitted, 1 µs earlier it is refused', async () => {
    const cost = fc.double({ min: 0, max: 1, noNaN: true })
    await fc.assert(
      fc.asyncProperty(anyLimit, anyLimit, steps, cost, async (before, after, trace, part) => {
        const traced = traceLimit(before)
        for (const step of trace) {
          traced.clock.advanceUs(step.waitUs(before))
          await traced.check(step.cost(before))
        }
        const asked = Math.max(1, Math.ceil(after.capacity * part))
        const refused = await traced.check(asked, after)
        if (refused.allowed) return
        const waitUs = inUs(refused.retryAfterMs)
        expect(waitUs).toBeLessThanOrEqual(Math.max(before.spanUs, after.spanUs))
        traced.clock.advanceUs(waitUs - 1)
        const early = await traced.check(asked, after)
        expect([early.allowed, inUs(early.retryAfterMs)]).toEqual([false, 1])
        traced.clock.advanceUs(1)
        expect((await traced.check(asked, after)).allowed).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  it('never names a wait beyond what an exhausted limit of today would need, nor beyond the old state', async () => {
    await fc.assert(
      fc.asyncProperty(anyLimit, anyLimit, async (before, after) => {
        const traced = traceLimit(before)
        await traced.check(before.capacity)
        const { resetAfterMs } = statusOf(await traced.peek(0))
        const refused = await traced.check(1, after)
        if (refused.allowed) return
        expect(refused.retryAfterMs).toBeLessThanOrEqual(Math.max(resetAfterMs, after.spanUs / 1000))
      }),
      { numRuns: 500 },
    )
  })

  it('as worked out by hand: 80 of 100 a minute, then 50 a minute', async () => {
    const traced = traceLimit(tokenBucket({ limit: 100, period: '1m' }))
    await traced.check(80)
    const lower = tokenBucket({ limit: 50, period: '1m' })
    // 31 units have to drain, at 100 a minute.
    expect(await traced.check(1, lower)).toMatchObject({ allowed: false, retryAfterMs: 18_600 })
    expect(statusOf(await traced.peek(1, lower))).toMatchObject({ remaining: 0, retryAfterMs: 18_600, nextMs: 18_600 })
    traced.clock.advance(18_600)
    expect(statusOf(await traced.check(1, lower))).toMatchObject({ remaining: 0, retryAfterMs: 0, nextMs: 1200 })
  })

  it('as worked out by hand: the same rate with a smaller burst', async () => {
    const traced = traceLimit(tokenBucket({ limit: 1, period: '1s', burst: 10 }))
    await traced.check(10)
    const smaller = tokenBucket({ limit: 1, period: '1s', burst: 2 })
    expect(await traced.check(1, smaller)).toMatchObject({ allowed: false, retryAfterMs: 9000 })
    traced.clock.advance(9000)
    expect(statusOf(await traced.check(1, smaller)).remaining).toBe(0)
  })

  it('as worked out by hand: from one algorithm to the other', async () => {
    const startMs = Date.UTC(2026, 0, 1, 0, 0, 10)
    const [bucket, window] = [tokenBucket({ limit: 60, period: '1m' }), fixedWindow({ limit: 60, period: '1m' })]
    const fromBucket = traceLimit(bucket, startMs)
    await fromBucket.check(60)
    expect((await fromBucket.check(3, window)).retryAfterMs).toBe(3000)
    const fromWindow = traceLimit(window, startMs)
    await fromWindow.check(60)
    expect((await fromWindow.check(3, bucket)).retryAfterMs).toBe(50_000)
  })
})
