import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sized } from '../../../../../test/arbitraries.ts'
import { tokenBuckets } from '../../../../../test/limit-arbitraries.ts'
import { statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { tokenBucket } from './index.ts'

const big = ({ wire }: { wire: readonly number[] }) => wire.map(BigInt) as [bigint, bigint, bigint, bigint]

describe("an instance's share of a token bucket", () => {
  it('is N/k a period and C/k at once, at least one unit', () => {
    const share = tokenBucket({ limit: 100, period: '1s', burst: 30 }).share(4)
    expect([share.wire, share.capacity]).toEqual([tokenBucket({ limit: 25, period: '1s', burst: 7 }).wire, 7])
    expect(tokenBucket({ limit: 3, period: '1s' }).share(10).capacity).toBe(1)
  })

  it('keeps the exact rate: k shares together admit at most N·T/P, and max(C, k) at once', () => {
    fc.assert(
      fc.property(tokenBuckets, sized(100_000, 1), (bucket, instances) => {
        const share = bucket.share(instances)
        const [, rate, grain, burst] = big(bucket)
        const [, shareRate, shareGrain, shareBurst] = big(share)
        const k = BigInt(instances)
        expect(k * shareBurst <= (burst > k ? burst : k)).toBe(true)
        // 2^51 µs, 71 years, is the slowest rate that there is.
        expect(k * shareRate * grain <= rate * shareGrain || shareGrain === 2n ** 51n).toBe(true)
        expect(shareBurst * shareGrain < 2n ** 53n && shareBurst >= 1n).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it('never fails for want of range: a caller of a limiter without its store gets a decision', async () => {
    for (const [limit, period, instances] of [
      [1, '3660d', 100_000],
      [1, '365d', 100_000],
      [7, 316_223_999_999.999, 99_991],
    ] as const) {
      const traced = traceLimit(tokenBucket({ limit, period }).share(instances))
      expect((await traced.check()).allowed).toBe(true)
      const refused = await traced.check()
      expect([refused.allowed, Number.isFinite(refused.retryAfterMs)]).toEqual([false, true])
      expect(statusOf(refused).remaining).toBe(0)
    }
  })

  it('of one instance is the whole, and of nothing is nothing', () => {
    const bucket = tokenBucket({ limit: 10, period: '1s' })
    const none = tokenBucket({ limit: 0, period: '1s' })
    expect([bucket.share(1), none.share(3)]).toEqual([bucket, none])
  })
})
