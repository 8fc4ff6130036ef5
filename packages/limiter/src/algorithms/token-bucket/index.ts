import type { Codec, Division, Limit, LimitNumbers, State } from '../../limit.ts'
import { LEAKY_BUCKET, TOKEN_BUCKET } from '../codes.ts'
import { ceilDiv, gcd, MAX_EXACT } from '../exact.ts'
import { scoped, sharePeriodUs } from '../params.ts'
import { forget, giveBack, remember } from './giving-back.ts'
import { reduce, type TokenBucketOptions, type TokenBucketParams, tokenBucketParams } from './params.ts'
import { type BucketState, drain, drainedAfter, regrain, spend, unitsUsed } from './step.ts'

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
  readonly books = true
  readonly leases: boolean
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
    this.leases = code === TOKEN_BUCKET
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

  withhold(view: number[], at: number, units: number): void {
    const level = (view[at] as number) + units * this.grain
    view[at] = level < MAX_EXACT ? level : MAX_EXACT
  }

  place(view: readonly number[], at: number, _nowUs: number, cost: number): number {
    const level = view[at] as number
    if (this.capacity === 0 || cost > this.capacity || level > MAX_EXACT - cost * this.grain) return -1
    const over = level - (this.capacity - cost) * this.grain
    return over > 0 ? ceilDiv(over, this.rate) : 0
  }

  divide(left: number, _aheadUs: number): Division {
    // 2. what is left lies on top of what is taken
    const above = left * this.grain
    return { left, soonerUs: 0, lessUs: (above - (above % this.rate)) / this.rate }
  }

  wrote(state: BucketState): boolean {
    return state.rate === this.rate && state.grain === this.grain && state.level <= this.full + state.ahead
  }

  postpone(view: number[], at: number, _nowUs: number, cost: number, waitUs: number): void {
    const level = (this.capacity - cost) * this.grain + waitUs * this.rate
    view[at] = level < MAX_EXACT ? level : MAX_EXACT
  }

  take(state: State | undefined, nowUs: number, view: number[], at: number, cost: number): BucketState {
    const before = view[at] as number
    const level = before + cost * this.grain
    view[at] = level < MAX_EXACT ? level : MAX_EXACT
    return this.put(view[at], before, nowUs, state)
  }

  close(view: readonly number[], at: number, nowUs: number, former?: State): BucketState {
    return this.put(view[at] as number, view[at] as number, nowUs, former)
  }

  /** @param before what was in use before this charge, under this limit's own numbers */
  private put(level: number, before: number, nowUs: number, former: State | undefined): BucketState {
    const ahead = level > this.full ? level - this.full : 0
    if (former?.code !== this.code)
      return { code: this.code, level, atUs: nowUs, rate: this.rate, grain: this.grain, ahead }
    const state = former as BucketState
    forget(state, nowUs)
    // Under other numbers, or another clock, receipts of before would outlive what they are of.
    if (state.atUs > nowUs || state.rate !== this.rate || state.grain !== this.grain) {
      const sinceUs = state.atUs > nowUs ? state.atUs : nowUs
      const untilUs = sinceUs + drainedAfter(state, nowUs)
      if (untilUs > nowUs) remember(state, nowUs, sinceUs, nowUs + Math.floor(before / this.rate), untilUs)
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
    const us = nowUs + Math.floor((view[at] as number) / this.rate)
    return us < MAX_EXACT ? us : MAX_EXACT
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
/** How many doubles may follow. */
const LENGTHS = [0, 3, 5, 7, 9]

/**
 * Stored: the code, then level, instant (µs), rate and grain, as big-endian doubles: 33 bytes; and what is booked
 * beyond a full bucket, where something is; and then what giving back left behind.
 */
export function bucketCodec(code: number): Codec<BucketState> {
  /** Units take their turns one by one. */
  const inLine = code === LEAKY_BUCKET
  return {
    code,

    encode({ level, atUs, rate, grain, ahead, given }) {
      const raw = Buffer.allocUnsafe(given !== undefined ? LONG_SIZE + given.length * 8 : ahead > 0 ? LONG_SIZE : SIZE)
      raw.writeUInt8(code, 0)
      raw.writeDoubleBE(level, 1)
      raw.writeDoubleBE(atUs, 9)
      raw.writeDoubleBE(rate, 17)
      raw.writeDoubleBE(grain, 25)
      if (raw.length > SIZE) raw.writeDoubleBE(ahead, SIZE)
      for (let i = 0; given !== undefined && i < given.length; i++) {
        raw.writeDoubleBE(given[i] as number, LONG_SIZE + i * 8)
      }
      return raw
    },

    decode(raw) {
      const more = (raw.length - LONG_SIZE) / 8
      if ((raw.length !== SIZE && !LENGTHS.includes(more)) || raw[0] !== code) return undefined
      const [level, atUs, rate, grain] = [1, 9, 17, 25].map((at) => raw.readDoubleBE(at)) as [
        number,
        number,
        number,
        number,
      ]
      const ahead = raw.length > SIZE ? raw.readDoubleBE(SIZE) : 0
      const given = more > 0 ? Array.from({ length: more }, (_, i) => raw.readDoubleBE(LONG_SIZE + i * 8)) : undefined
      const exact = [level, atUs, rate, grain, ahead, ...(given ?? [])].every((x) => x >= 0 && Number.isSafeInteger(x))
      if (!exact || rate < 1 || grain < 1 || grain > MAX_GRAIN || ahead > level) return undefined
      return given === undefined
        ? { code, level, atUs, rate, grain, ahead }
        : { code, level, atUs, rate, grain, ahead, given }
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
      const lifetime = drainedAfter(state, nowUs)
      const known = state.given === undefined ? 0 : (state.given[0] as number) - nowUs
      return known > lifetime ? known : lifetime
    },

    give: (state, ...charge) => giveBack(state, inLine, ...charge),

    spend,
  }
}

export const tokenBucketCodec = bucketCodec(TOKEN_BUCKET)
