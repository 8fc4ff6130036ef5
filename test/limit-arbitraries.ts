import fc from 'fast-check'
import { concurrency, fixedWindow, type Limit, leakyBucket, slidingLog, slidingWindow, tokenBucket } from 'headgate'
import { sized } from './arbitraries.ts'

const PERIODS_MS = [1, 10, 1000, 60_000, 3_600_000, 86_400_000, 365 * 86_400_000]

/** Periods from a millisecond to a year, the usual ones often; the others are whole µs. */
const periodMs = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...PERIODS_MS) },
  sized(365 * 86_400_000_000, 1).map((us) => us / 1000),
)

/** Token buckets from one unit a year to millions a second, with bursts as large as stay exact. */
export const tokenBuckets: fc.Arbitrary<Limit> = fc
  .tuple(sized(5_000_000, 1), periodMs, sized(1_000_000, 1))
  .filter(([limit, period]) => fitting(limit, period) >= 1)
  .map(([limit, period, burst]) => tokenBucket({ limit, period, burst: Math.min(burst, fitting(limit, period)) }))

/** Buckets of few units, whose edges short sequences reach. */
export const smallBuckets: fc.Arbitrary<Limit> = fc
  .tuple(fc.integer({ min: 1, max: 12 }), periodMs, fc.integer({ min: 1, max: 12 }))
  .map(([limit, period, burst]) => tokenBucket({ limit, period, burst }))

export const fixedWindows: fc.Arbitrary<Limit> = fc
  .tuple(
    fc.oneof(fc.integer({ min: 1, max: 12 }), sized(1_000_000, 1)),
    periodMs,
    fc.constantFrom('clock', 'first-hit'),
  )
  .map(([limit, period, align]) => fixedWindow({ limit, period, align: align as 'clock' }))

export const calendars: fc.Arbitrary<Limit> = fc
  .tuple(
    fc.oneof(fc.integer({ min: 1, max: 12 }), sized(1_000_000, 1)),
    fc.constantFrom('minute', 'hour', 'day', 'week', 'month', 'year'),
    fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'America/Havana'),
    fc.integer({ min: 1, max: 31 }),
  )
  .map(([limit, period, timeZone, day]) => {
    const anchor = period === 'month' ? { anchorDay: day } : period === 'week' ? { anchorDay: (day % 7) + 1 } : {}
    return fixedWindow({ limit, period, align: 'calendar', timeZone, ...anchor })
  })

export const leakyBuckets: fc.Arbitrary<Limit> = fc
  .tuple(fc.integer({ min: 1, max: 12 }), periodMs, fc.integer({ min: 0, max: 12 }))
  .map(([limit, period, queue]) => leakyBucket({ limit, period, queue }))

export const slidingWindows: fc.Arbitrary<Limit> = fc
  .tuple(
    fc.oneof(fc.integer({ min: 1, max: 12 }), sized(1_000_000, 1), sized(2 ** 49, 1)),
    periodMs,
    fc.oneof(fc.constantFrom(1, 2, 10, 60), fc.integer({ min: 1, max: 60 })),
    fc.boolean(),
  )
  .map(([limit, period, slices, strict]) => slidingWindow({ limit, period, slices, strict }))

export const slidingLogs: fc.Arbitrary<Limit> = fc
  .tuple(fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 12 }) }, sized(10_000, 1)), periodMs)
  .map(([limit, period]) => slidingLog({ limit, period }))

export const slots: fc.Arbitrary<Limit> = fc
  .tuple(fc.integer({ min: 1, max: 12 }), periodMs)
  .map(([limit, ttl]) => concurrency({ limit, ttl }))

/** The largest burst that stays exact at this rate; 0: none. */
function fitting(limit: number, periodMs: number): number {
  let [a, b] = [limit, Math.round(periodMs * 1000)]
  while (a > 0) [a, b] = [b % a, a]
  return Math.floor(Number.MAX_SAFE_INTEGER / (Math.round(periodMs * 1000) / b))
}

/** A step of a trace: how long to wait, in parts of the limit's own spans, and what to ask for. */
export interface Step {
  /** µs to wait before the check. */
  readonly waitUs: (limit: Limit) => number
  readonly cost: (limit: Limit) => number
}

/** Three years: a whole trace of such waits still ends below 2^53 µs. */
const MAX_WAIT_US = 1e14
const atMost = (us: number) => Math.min(MAX_WAIT_US, Math.max(0, us))

const waits = fc.oneof(
  { weight: 4, arbitrary: fc.constant(() => 0) },
  fc.integer({ min: 1, max: 3 }).map((us) => () => us),
  fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: -1, max: 1 })).map(([units, off]) => {
    return (limit: Limit) => atMost(Math.ceil((units * limit.periodUs) / limit.limit) + off)
  }),
  fc.double({ min: 0, max: 1.2, noNaN: true }).map((part) => (limit: Limit) => atMost(Math.ceil(limit.spanUs * part))),
)

const costs = fc.oneof(
  { weight: 4, arbitrary: fc.constant(() => 1) },
  fc.integer({ min: 0, max: 4 }).map((cost) => () => cost),
  fc.double({ min: 0, max: 1.1, noNaN: true }).map((part) => (limit: Limit) => Math.ceil(limit.capacity * part)),
)

export const steps: fc.Arbitrary<Step[]> = fc.array(fc.record({ waitUs: waits, cost: costs }), {
  minLength: 1,
  maxLength: 40,
})
