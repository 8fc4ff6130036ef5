import type { Codec, Limit, LimitNumbers, State } from '../../limit.ts'
import { TOKEN_BUCKET } from '../codes.ts'
import { ceilDiv, gcd, MAX_EXACT } from '../exact.ts'
import { scoped, sharePeriodUs } from '../params.ts'
import { reduce, type TokenBucketOptions, type TokenBucketParams, tokenBucketParams } from './params.ts'
import {
  aheadLeft,
  type BucketState,
  drain,
  drainedAfter,
  drainedBy,
  MAX_GIVEN,
  regrain,
  remember,
  unitsUsed,
} from './step.ts'

export type { TokenBucketOptions, TokenBucketParams } from './params.ts'

/**
 * A bucket of `burst` units that fills at `limit` a `period`.
 *
 * Law: in any interval of length T at most burst + limit·T/period units are admitted, and a cost for
 * which that leaves room is never refused.
 * @throws InvalidArgumentError naming the option; `HEADGATE_OUT_OF_RANGE` where burst × grain would pass 2^53
 */
export function tokenBucket(options: TokenBucketOptions): Limit {
  return scoped(new TokenBucket(tokenBucketParams(options)), options.scope)
}

/** View: the level, in parts, under this limit's own grain; above `full` where places in line are booked. */
export class TokenBucket implements Limit<BucketState> {
  readonly algorithm: string
  readonly code: number
  readonly limit: number
  readonly capacity: number
  readonly periodUs: number
  readonly wire: readonly number[]
  readonly spanUs: number
  readonly viewSize = 1
  readonly startsEmpty: boolean
  protected readonly rate: number
  protected readonly grain: number
  /** The level of an exhausted bucket. */
  protected readonly full: number

  constructor(params: TokenBucketParams, algorithm = 'token-bucket', code = TOKEN_BUCKET) {
    this.algorithm = algorithm
    this.code = code
    this.limit = params.limit
    this.capacity = params.burst
    this.periodUs = params.periodUs
    this.rate = params.rate
    this.grain = params.grain
    this.full = params.burst * params.grain
    this.spanUs = ceilDiv(this.full, params.rate)
    this.startsEmpty = params.startsEmpty === true
    this.wire = [this.code, params.rate, params.grain, params.burst]
  }

  open(state: BucketState | undefined, nowUs: number, view: number[], at: number): boolean {
    // 1. no state: unused
    if (state === undefined) {
      view[at] = 0
      return false
    }
    // 2. what has drained, then this limit's grain; only what was booked goes beyond exhausted
    const booked = state.ahead > 0 && state.atUs <= nowUs
    const most = booked ? this.full + regrain(state.ahead, state.grain, this.grain, MAX_EXACT - this.full) : this.full
    const level = drain(state, nowUs)
    view[at] = regrain(level, state.grain, this.grain, most)
    // 3. an instant in the future is a repair, and so is a slower rate, which would outlive its rule
    if (state.atUs > nowUs || state.rate * this.grain < this.rate * state.grain) return true
    // 4. and so is what would last a hundred times as long as an exhausted bucket of today
    return view[at] === most && most === this.full && ceilDiv(level, state.rate) > 100 * this.spanUs
  }

  adopt(units: number, _nowUs: number, view: number[], at: number): void {
    view[at] = units >= this.capacity ? this.full : units * this.grain
  }

  admits(view: readonly number[], at: number, cost: number): boolean {
    return this.capacity > 0 && cost <= this.capacity && (view[at] as number) <= (this.capacity - cost) * this.grain
  }

  room(view: readonly number[], at: number): number {
    const used = ceilDiv(view[at] as number, this.grain)
    return used < this.capacity ? this.capacity - used : 0
  }

  place(view: readonly number[], at: number, _nowUs: number, cost: number): number {
    const level = view[at] as number
    if (this.capacity === 0 || cost > this.capacity || level > MAX_EXACT - cost * this.grain) return -1
    const over = level - (this.capacity - cost) * this.grain
    return over > 0 ? ceilDiv(over, this.rate) : 0
  }

  wrote(state: BucketState): boolean {
    return state.rate === this.rate && state.grain === this.grain && state.level <= this.full + state.ahead
  }

  postpone(view: number[], at: number, _nowUs: number, cost: number, waitUs: number): void {
    const level = (this.capacity - cost) * this.grain + waitUs * this.rate
    view[at] = level < MAX_EXACT ? level : MAX_EXACT
  }

  take(state: State | undefined, nowUs: number, view: number[], at: number, cost: number): BucketState {
    const used = view[at] as number
    const level = used + cost * this.grain
    view[at] = level < MAX_EXACT ? level : MAX_EXACT
    return this.keep(view[at] as number, used, nowUs, state)
  }

  close(view: readonly number[], at: number, nowUs: number, former?: State): BucketState {
    const level = view[at] as number
    return this.keep(level, level, nowUs, former)
  }

  /** @param used the level before anything was taken: what the former state is under this limit's own numbers */
  private keep(level: number, used: number, nowUs: number, former: State | undefined): BucketState {
    const ahead = level > this.full ? level - this.full : 0
    if (former?.code !== this.code)
      return { code: this.code, level, atUs: nowUs, rate: this.rate, grain: this.grain, ahead }
    const state = former as BucketState
    if (state.rate !== this.rate || state.grain !== this.grain) {
      // Under other numbers, what was charged drains at another instant than its receipt says.
      const lastUs = nowUs + drainedAfter(state, nowUs)
      state.given = remember(state.given, nowUs, nowUs, nowUs + Math.floor(used / this.rate), lastUs)
    }
    state.level = level
    state.atUs = nowUs
    state.rate = this.rate
    state.grain = this.grain
    state.ahead = ahead
    return state
  }

  exhausted(atUs: number): BucketState {
    return { code: this.code, level: this.full, atUs, rate: this.rate, grain: this.grain, ahead: 0 }
  }

  /** The instant at which the charge has drained: what is charged later lies on top of it. */
  receiptUs(view: readonly number[], at: number, nowUs: number): number {
    return nowUs + Math.floor((view[at] as number) / this.rate)
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
      return this.like({ limit: this.limit, periodUs: this.periodUs * instances, burst, rate, grain })
    }
    // Where the exact share leaves the exact range, the next slower rate takes its place.
    const periodUs = sharePeriodUs(this.periodUs, this.limit, instances)
    return this.like(reduce(1, periodUs, Math.min(burst, Math.floor(MAX_EXACT / periodUs))))
  }

  protected like(params: TokenBucketParams): Limit {
    return new TokenBucket({ ...params, startsEmpty: this.startsEmpty })
  }
}

/** Above this, {@link mulDivCeil} would leave the exact range. */
const MAX_GRAIN = 2 ** 51
const SIZE = 33
/** With places in line. */
const LONG_SIZE = 41

/**
 * Stored: the code, then level, instant (µs), rate and grain, as big-endian doubles: 33 bytes; where needed, what is
 * booked beyond a full bucket, and the pairs of {@link remember}.
 */
export function bucketCodec(code: number): Codec<BucketState> {
  return {
    code,

    encode({ level, atUs, rate, grain, ahead, given }) {
      const numbers = [level, atUs, rate, grain]
      if (given !== undefined) numbers.push(ahead, ...given)
      else if (ahead > 0) numbers.push(ahead)
      const raw = Buffer.allocUnsafe(1 + 8 * numbers.length)
      raw.writeUInt8(code, 0)
      for (let i = 0; i < numbers.length; i++) raw.writeDoubleBE(numbers[i] as number, 1 + 8 * i)
      return raw
    },

    decode(raw) {
      const pairs = (raw.length - LONG_SIZE - 8) / 16
      const short = raw.length === SIZE || raw.length === LONG_SIZE
      const sized = short || (Number.isInteger(pairs) && pairs >= 1 && pairs <= MAX_GIVEN)
      if (!sized || raw[0] !== code) return undefined
      const numbers = Array.from({ length: (raw.length - 1) / 8 }, (_, i) => raw.readDoubleBE(1 + 8 * i))
      if (!numbers.every((x) => x >= 0 && Number.isSafeInteger(x))) return undefined
      const [level = 0, atUs = 0, rate = 0, grain = 0, ahead = 0, ...given] = numbers
      if (rate < 1 || grain < 1 || grain > MAX_GRAIN || ahead > level) return undefined
      const state = { code, level, atUs, rate, grain, ahead }
      return given.length > 0 ? { ...state, given } : state
    },

    roomAfterUs(state, nowUs, units) {
      const over = drain(state, nowUs) - units * state.grain
      return over > 0 ? ceilDiv(over, state.rate) : 0
    },

    ahead(state, nowUs, spanUs) {
      return state.atUs > nowUs || drainedAfter(state, nowUs) > spanUs
    },

    used: unitsUsed,

    lifetimeUs(state, nowUs) {
      const drainedUs = drainedAfter(state, nowUs)
      const named = state.given === undefined ? 0 : (state.given[0] as number) - nowUs
      return named > drainedUs ? named : drainedUs
    },

    give(state, nowUs, units, receiptUs, chargedUs) {
      // 1. what is left now
      const level = drain(state, nowUs)
      const ahead = aheadLeft(state, level)
      const drainedUs = ceilDiv(level, state.rate)
      // 2. of the charge, what has not drained; of a place in line, only the last
      let back = units * state.grain
      if (receiptUs > 0) {
        const endUs = drainedBy(state.given, receiptUs, chargedUs)
        const left = endUs > nowUs ? (endUs - nowUs) * state.rate : 0
        if (left < back) back = left
        if (ahead > 0 && nowUs + Math.floor(level / state.rate) !== receiptUs) back = 0
      }
      if (back > level) back = level
      // 3. whatever lies above it drains earlier now
      if (back > 0) {
        const endUs = nowUs + Math.floor((level - back) / state.rate)
        state.given = remember(state.given, nowUs, nowUs, endUs, nowUs + drainedUs)
      }
      state.level = level - back
      if (nowUs > state.atUs) state.atUs = nowUs
      state.ahead = ahead > back ? ahead - back : 0
      return Math.floor(back / state.grain)
    },
  }
}

export const tokenBucketCodec = bucketCodec(TOKEN_BUCKET)
