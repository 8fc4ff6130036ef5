import type { Duration } from '../../duration.ts'
import type { Division, Limit } from '../../limit.ts'
import { refuseUnknown } from '../../options.ts'
import { LEAKY_BUCKET } from '../codes.ts'
import { ceilDiv } from '../exact.ts'
import { periodOf, type Scope, scoped, unitsOf } from '../params.ts'
import { bucketCodec, TokenBucket, type TokenBucketParams } from '../token-bucket/index.ts'
import { reduce } from '../token-bucket/params.ts'

export interface LeakyBucketOptions {
  /** Units a period, integer ≥ 0; 0 refuses all. */
  limit: number
  /** `'1s'`, `'1m'` … or a number of ms; at most ten years. */
  period: Duration
  /** How many units may wait for their turn, integer ≥ 0; default `limit`. */
  queue?: number
  /** `instance`: each process has a line of its own, in its memory. */
  scope?: Scope
}

/**
 * Lets units through one by one, at `limit` a `period`; as many as `queue` wait for their turn.
 *
 * Law: the instants at which admitted units proceed (`at` + `delayMs`) lie at least period/limit
 * apart, to the rounding µs; a cost is refused only where it would have to wait for more than `queue`
 * units. (A leaky bucket as a queue; the arithmetic is the token bucket's, with what waits as its level.)
 * @throws InvalidArgumentError naming the option
 */
export function leakyBucket(options: LeakyBucketOptions): Limit {
  refuseUnknown(options, ['limit', 'period', 'queue', 'scope'], 'leakyBucket')
  const limit = unitsOf(options.limit, 'limit', 0)
  const periodUs = periodOf(options.period, 'period')
  const queue = options.queue === undefined ? limit : unitsOf(options.queue, 'queue', 0)
  return scoped(new LeakyBucket(reduce(limit, periodUs, limit === 0 ? 0 : queue + 1, 'queue')), options.scope)
}

/** View: the level, in parts: what proceeds now, and what waits. */
class LeakyBucket extends TokenBucket {
  constructor(params: TokenBucketParams) {
    super(params, 'leaky-bucket', LEAKY_BUCKET)
  }

  /** The queue is the rule's own bound: nobody waits behind it. */
  override place(view: readonly number[], at: number, _nowUs: number, cost: number): number {
    if (!this.admits(view, at, cost)) return -1
    return cost === 0 ? 0 : ceilDiv((view[at] as number) + (cost - 1) * this.grain, this.rate)
  }

  override divide(left: number, aheadUs: number): Division {
    // 1. units that take their turns one by one: those whose turns have passed are lost
    const coming = ceilDiv(aheadUs * this.rate, this.grain) - 1
    const division = super.divide(Math.min(left, coming), aheadUs)
    return { ...division, soonerUs: division.lessUs }
  }

  /** The last unit of what was taken proceeds when what lies before it has. */
  delayUs(view: readonly number[], at: number): number {
    const before = (view[at] as number) - this.grain
    return before > 0 ? ceilDiv(before, this.rate) : 0
  }

  protected override like(params: TokenBucketParams): Limit {
    return new LeakyBucket(params)
  }
}

export const leakyBucketCodec = bucketCodec(LEAKY_BUCKET)
