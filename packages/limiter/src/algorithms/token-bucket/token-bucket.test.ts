import { describe, expect, it } from 'vitest'
import { statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { tokenBucket } from './index.ts'

const NEVER = Number.POSITIVE_INFINITY
const YEAR_MS = 365 * 86_400_000

/** ms since the start, cost, then: allowed, remaining, retryAfterMs, nextMs, resetAfterMs. */
type Row = [atMs: number, cost: number, allowed: boolean, remaining: number, retry: number, next: number, reset: number]

const examples: { name: string; options: Parameters<typeof tokenBucket>[0]; rows: Row[] }[] = [
  {
    name: '5 a second: a unit comes back every 200 ms',
    options: { limit: 5, period: '1s' },
    rows: [
      [0, 3, true, 2, 0, 200, 600],
      [0, 3, false, 2, 200, 200, 600],
      [0, 2, true, 0, 0, 200, 1000],
      [199.999, 1, false, 0, 0.001, 0.001, 800.001],
      [200, 1, true, 0, 0, 200, 1000],
      [1200, 5, true, 0, 0, 200, 1000],
      [1200, 6, false, 0, NEVER, 200, 1000],
      [9000, 1, true, 4, 0, 200, 200],
    ],
  },
  {
    name: '3 a second: a third of a second is no whole number of µs, and waits round up',
    options: { limit: 3, period: '1s' },
    rows: [
      [0, 3, true, 0, 0, 333.334, 1000],
      [333.333, 1, false, 0, 0.001, 0.001, 666.667],
      [333.334, 1, true, 0, 0, 333.333, 1000],
      [666.667, 1, true, 0, 0, 333.333, 1000],
      [999.999, 1, false, 0, 0.001, 0.001, 666.668],
      [1000, 1, true, 0, 0, 333.334, 1000],
    ],
  },
  {
    name: 'a burst above the rate',
    options: { limit: 1, period: '1s', burst: 3 },
    rows: [
      [0, 2, true, 1, 0, 1000, 2000],
      [500, 1, true, 0, 0, 500, 2500],
      [500, 2, false, 0, 1500, 500, 2500],
      [2000, 2, true, 0, 0, 1000, 3000],
    ],
  },
  {
    name: 'a burst below the rate: 8 a second, never 8 at once',
    options: { limit: 8, period: '1s', burst: 2 },
    rows: [
      [0, 2, true, 0, 0, 125, 250],
      [0, 1, false, 0, 125, 125, 250],
      [125, 1, true, 0, 0, 125, 250],
      [125, 3, false, 0, NEVER, 125, 250],
      [375, 2, true, 0, 0, 125, 250],
    ],
  },
  {
    name: 'one a year',
    options: { limit: 1, period: '365d' },
    rows: [
      [0, 1, true, 0, 0, YEAR_MS, YEAR_MS],
      [1, 1, false, 0, YEAR_MS - 1, YEAR_MS - 1, YEAR_MS - 1],
      [YEAR_MS - 0.001, 1, false, 0, 0.001, 0.001, 0.001],
      [YEAR_MS, 1, true, 0, 0, YEAR_MS, YEAR_MS],
    ],
  },
  {
    name: 'five million a second: five units a µs',
    options: { limit: 5_000_000, period: '1s', burst: 7 },
    rows: [
      [0, 7, true, 0, 0, 0.001, 0.002],
      [0, 1, false, 0, 0.001, 0.001, 0.002],
      [0.001, 5, true, 0, 0, 0.001, 0.002],
      [0.001, 6, false, 0, 0.002, 0.001, 0.002],
      [0.003, 7, true, 0, 0, 0.001, 0.002],
    ],
  },
  {
    name: '0 refuses all, also what costs nothing',
    options: { limit: 0, period: '1s' },
    rows: [
      [0, 1, false, 0, NEVER, 0, 0],
      [5000, 0, false, 0, NEVER, 0, 0],
    ],
  },
  {
    name: 'a cost of 0 only asks',
    options: { limit: 1, period: '1s' },
    rows: [
      [0, 0, true, 1, 0, 0, 0],
      [0, 1, true, 0, 0, 1000, 1000],
      [400, 0, true, 0, 0, 600, 600],
      [1000, 1, true, 0, 0, 1000, 1000],
    ],
  },
]

describe.each(examples)('token bucket: $name', ({ options, rows }) => {
  it('decides as worked out by hand', async () => {
    const limit = tokenBucket(options)
    const traced = traceLimit(limit)
    for (const [atMs, cost, allowed, remaining, retryAfterMs, nextMs, resetAfterMs] of rows) {
      traced.clock.advanceUs(Math.round(atMs * 1000) - traced.atUs)
      const decision = await traced.check(cost)
      const said = { atMs, cost, allowed: decision.allowed, retryAfterMs: decision.retryAfterMs }
      expect(said).toEqual({ atMs, cost, allowed, retryAfterMs })
      expect(statusOf(decision)).toEqual({
        name: 'traced',
        limit: options.limit,
        capacity: options.burst ?? options.limit,
        periodMs: limit.periodUs / 1000,
        remaining,
        retryAfterMs,
        nextMs,
        resetAfterMs,
      })
      const reason = allowed ? undefined : retryAfterMs === NEVER ? 'never' : 'limit'
      expect(decision.reason).toBe(reason)
    }
  })
})
