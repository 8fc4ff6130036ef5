import type { Duration } from '../../duration.ts'
import { InvalidArgumentError, show } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import { gcd, MAX_EXACT } from '../exact.ts'
import { periodOf, type Scope, unitsOf } from '../params.ts'

export interface TokenBucketOptions {
  /** Units a period, integer ≥ 0; 0 refuses all. */
  limit: number
  /** `'1s'`, `'1m'` … or a number of ms; at most ten years. */
  period: Duration
  /** The most units that can be taken at once, integer ≥ 1; default `limit`. */
  burst?: number
  /**
   * How a counter begins that nothing is known of. `full` (default): with all its units. `empty`: as if exhausted at
   * the rule's first use, the same instant for all keys and instances.
   */
  initial?: 'full' | 'empty'
  /** `instance`: each process has a budget of its own, in its memory. */
  scope?: Scope
}

/**
 * The numbers in integers: `limit`/`period` reduced to rate/grain, so that a unit is `grain` parts
 * and a microsecond gives `rate` parts back.
 */
export interface TokenBucketParams {
  readonly limit: number
  readonly periodUs: number
  readonly burst: number
  /** Parts given back each µs. */
  readonly rate: number
  /** Parts a unit. */
  readonly grain: number
  readonly startsEmpty?: boolean
}

/** Checks the options. @throws InvalidArgumentError also where burst × grain would pass 2^53 */
export function tokenBucketParams(options: TokenBucketOptions): TokenBucketParams {
  refuseUnknown(options, ['limit', 'period', 'burst', 'initial', 'scope'], 'tokenBucket')
  const limit = unitsOf(options.limit, 'limit', 0)
  const periodUs = periodOf(options.period, 'period')
  const burst = options.burst === undefined ? limit : unitsOf(options.burst, 'burst', limit === 0 ? 0 : 1)
  if (limit === 0 && burst > 0) {
    throw new InvalidArgumentError('burst', `${burst} contradicts limit 0, which refuses all; leave burst out`)
  }
  const { initial = 'full' } = options
  if (initial !== 'full' && initial !== 'empty') {
    throw new InvalidArgumentError('initial', `${show(initial)} is neither 'full' nor 'empty'`)
  }
  return { ...reduce(limit, periodUs, burst), startsEmpty: initial === 'empty' && limit > 0 }
}

/** Reduces the rate and checks the range. */
export function reduce(limit: number, periodUs: number, burst: number, argument = 'burst'): TokenBucketParams {
  // A bucket that refuses all holds nothing; any rate serves, and none divides by zero.
  if (limit === 0) return { limit, periodUs, burst, rate: 1, grain: 1 }
  const divisor = gcd(limit, periodUs)
  const params = { limit, periodUs, burst, rate: limit / divisor, grain: periodUs / divisor }
  if (!fits(burst, params.grain)) throw outOfRange(params, argument)
  return params
}

function fits(burst: number, grain: number): boolean {
  return burst <= Math.floor(MAX_EXACT / grain)
}

function outOfRange(params: TokenBucketParams, argument: string): InvalidArgumentError {
  const { limit, periodUs, burst, grain } = params
  // A queue holds one unit less than its bucket.
  const beyond = argument === 'queue' ? 1 : 0
  const largest = Math.floor(MAX_EXACT / grain) - beyond
  const near = nearestFit(limit, periodUs, burst)
  const way = near === undefined ? '' : `, or limit ${near} in the same period with this ${argument}`
  return new InvalidArgumentError(
    argument,
    `${burst - beyond} with limit ${limit} in ${periodUs / 1000} ms leaves the range of exact arithmetic; ` +
      `these fit: ${argument} ${largest} or less at this rate${way}`,
    'HEADGATE_OUT_OF_RANGE',
  )
}

/** The limit next to this one whose rate reduces far enough for the burst. */
function nearestFit(limit: number, periodUs: number, burst: number): number | undefined {
  for (let step = 1; step <= 10_000 && step < limit; step++) {
    for (const near of [limit - step, limit + step]) {
      if (near <= MAX_EXACT && fits(burst, periodUs / gcd(near, periodUs))) return near
    }
  }
  return undefined
}
