import type { Codec, Limit, LimitNumbers, State } from '../../limit.ts'
import { ceilDiv, gcd, MAX_EXACT } from '../exact.ts'
import { sharePeriodUs } from '../params.ts'
import { reduce, type TokenBucketOptions, type TokenBucketParams, tokenBucketParams } from './params.ts'
import { drain, drainedAfter, regrain, TOKEN_BUCKET, type TokenBucketState, unitsUsed } from './step.ts'

export type { TokenBucketOptions } from './params.ts'

/**
 * A bucket of `burst` units that fills at `limit` a `period`.
 *
 * Law: in any interval of length T at most burst + limit·T/period units are admitted, and a cost for
 * which that leaves room is never refused.
 * @throws InvalidArgumentError naming the option; `HEADGATE_OUT_OF_RANGE` where burst × grain would pass 2^53
 */
export function tokenBucket(options: TokenBucketOptions): Limit {
  return new TokenBucket(tokenBucketParams(options))
}

/** View: the level, in parts, under this limit's own grain. */
class TokenBucket implements Limit<TokenBucketState> {
  readonly algorithm = 'token-bucket'
  readonly code = TOKEN_BUCKET
  readonly limit: number
  readonly capacity: number
  readonly periodUs: number
  readonly wire: readonly number[]
  readonly spanUs: number
  readonly viewSize = 1
  private readonly rate: number
  private readonly grain: number
  /** The level of an exhausted bucket. */
  private readonly full: number

  constructor(params: TokenBucketParams) {
    this.limit = params.limit
    this.capacity = params.burst
    this.periodUs = params.periodUs
    this.rate = params.rate
    this.grain = params.grain
    this.full = params.burst * params.grain
    this.spanUs = ceilDiv(this.full, params.rate)
    this.wire = [TOKEN_BUCKET, params.rate, params.grain, params.burst]
  }

  open(state: TokenBucketState | undefined, nowUs: number, view: number[], at: number): boolean {
    // 1. no state: unused
    if (state === undefined) {
      view[at] = 0
      return false
    }
    // 2. what has drained, then this limit's grain
    view[at] = regrain(drain(state, nowUs), state.grain, this.grain, this.full)
    // 3. an instant in the future is a repair, and so is a slower rate, which would outlive its rule
    return state.atUs > nowUs || state.rate * this.grain < this.rate * state.grain
  }

  adopt(units: number, _nowUs: number, view: number[], at: number): void {
    view[at] = units >= this.capacity ? this.full : units * this.grain
  }

  admits(view: readonly number[], at: number, cost: number): boolean {
    return this.capacity > 0 && cost <= this.capacity && (view[at] as number) <= (this.capacity - cost) * this.grain
  }

  wrote(state: TokenBucketState): boolean {
    return state.rate === this.rate && state.grain === this.grain && state.level <= this.full
  }

  postpone(view: number[], at: number, _nowUs: number, cost: number, waitUs: number): void {
    const level = (this.capacity - cost) * this.grain + waitUs * this.rate
    view[at] = level < MAX_EXACT ? level : MAX_EXACT
  }

  charge(view: number[], at: number, cost: number): void {
    view[at] = (view[at] as number) + cost * this.grain
  }

  close(view: readonly number[], at: number, nowUs: number, former?: State): TokenBucketState {
    const level = view[at] as number
    if (former?.code !== TOKEN_BUCKET)
      return { code: TOKEN_BUCKET, level, atUs: nowUs, rate: this.rate, grain: this.grain }
    const state = former as TokenBucketState
    state.level = level
    state.atUs = nowUs
    state.rate = this.rate
    state.grain = this.grain
    return state
  }

  tell(view: readonly number[], at: number, _nowUs: number, cost: number, status: LimitNumbers): void {
    const level = view[at] as number
    // A wait under other numbers may stand for more than there is.
    const used = Math.min(ceilDiv(level, this.grain), this.capacity)
    status.limit = this.limit
    status.capacity = this.capacity
    status.periodMs = this.periodUs / 1000
    status.remaining = this.capacity - used
    status.retryAfterMs = this.retryAfterUs(level, cost) / 1000
    if (used === 0) return
    status.nextMs = ceilDiv(level - (used - 1) * this.grain, this.rate) / 1000
    status.resetAfterMs = used === 1 ? status.nextMs : ceilDiv(level, this.rate) / 1000
  }

  private retryAfterUs(level: number, cost: number): number {
    if (cost > this.capacity || this.capacity === 0) return Number.POSITIVE_INFINITY
    const room = (this.capacity - cost) * this.grain
    return level <= room ? 0 : ceilDiv(level - room, this.rate)
  }

  /** Rate N/k and burst C/k, at least one unit: k instances together keep the rate exactly. */
  share(instances: number): Limit {
    if (this.limit === 0 || instances === 1) return this
    const burst = Math.max(1, Math.floor(this.capacity / instances))
    const divisor = gcd(this.rate, instances)
    const grain = this.grain * (instances / divisor)
    if (grain <= MAX_GRAIN && burst <= Math.floor(MAX_EXACT / grain)) {
      const rate = this.rate / divisor
      return new TokenBucket({ limit: this.limit, periodUs: this.periodUs * instances, burst, rate, grain })
    }
    // Where the exact share leaves the exact range, the next slower rate takes its place.
    const periodUs = sharePeriodUs(this.periodUs, this.limit, instances)
    return new TokenBucket(reduce(1, periodUs, Math.min(burst, Math.floor(MAX_EXACT / periodUs))))
  }
}

/** Above this, {@link mulDivCeil} would leave the exact range. */
const MAX_GRAIN = 2 ** 51
const SIZE = 33

/** Stored: the code, then level, instant (µs), rate and grain, as big-endian doubles: 33 bytes. */
export const tokenBucketCodec: Codec<TokenBucketState> = {
  code: TOKEN_BUCKET,

  encode(state) {
    const raw = Buffer.allocUnsafe(SIZE)
    raw.writeUInt8(TOKEN_BUCKET, 0)
    raw.writeDoubleBE(state.level, 1)
    raw.writeDoubleBE(state.atUs, 9)
    raw.writeDoubleBE(state.rate, 17)
    raw.writeDoubleBE(state.grain, 25)
    return raw
  },

  decode(raw) {
    if (raw.length !== SIZE || raw[0] !== TOKEN_BUCKET) return undefined
    const [level, atUs, rate, grain] = [1, 9, 17, 25].map((at) => raw.readDoubleBE(at)) as [
      number,
      number,
      number,
      number,
    ]
    const exact = [level, atUs, rate, grain].every((x) => x >= 0 && Number.isSafeInteger(x))
    return exact && rate >= 1 && grain >= 1 && grain <= MAX_GRAIN
      ? { code: TOKEN_BUCKET, level, atUs, rate, grain }
      : undefined
  },

  roomAfterUs(state, nowUs, units) {
    const over = drain(state, nowUs) - units * state.grain
    return over > 0 ? ceilDiv(over, state.rate) : 0
  },

  ahead(state, nowUs, spanUs) {
    return state.atUs > nowUs || drainedAfter(state, nowUs) > spanUs
  },

  used: unitsUsed,

  lifetimeUs: drainedAfter,
}
