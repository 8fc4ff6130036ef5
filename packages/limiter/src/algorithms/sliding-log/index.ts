import type { Codec, Limit, LimitNumbers, State } from '../../limit.ts'
import { SLIDING_LOG } from '../codes.ts'
import { Counted } from '../counted.ts'
import { MAX_EXACT } from '../exact.ts'
import { countUntil } from '../list.ts'
import { MAX_SHARE_US, scoped, sharePeriodUs } from '../params.ts'
import { MAX_LOG, type SlidingLogOptions, type SlidingLogParams, slidingLogParams } from './params.ts'
import {
  append,
  fitsAt,
  giveFrom,
  giveNewest,
  isFuture,
  type LogState,
  lapsedRuns,
  lastLapse,
  MAX_TOTAL,
  newLog,
  trim,
  under,
  unitsUsed,
} from './step.ts'

export type { SlidingLogOptions } from './params.ts'

/**
 * At most `limit` units in any window of one `period`, exactly: every charge is remembered until it lapses.
 *
 * Law: never more than `limit` units in any window of length `period`, and a cost for which the last period has room
 * is never refused. A key holds one entry for each instant that something was charged at: 16 bytes, at most `limit`.
 * @throws InvalidArgumentError naming the option; `HEADGATE_OUT_OF_RANGE` above 10,000 units
 */
export function slidingLog(options: SlidingLogOptions): Limit {
  return scoped(new SlidingLog(slidingLogParams(options)), options.scope)
}

/**
 * View: units used; the instant at which the cost fits if nobody comes (0: it fits now); the instants at which less
 * is used, and nothing (0: nothing is).
 */
class SlidingLog extends Counted implements Limit<LogState> {
  readonly algorithm = 'sliding-log'
  readonly code = SLIDING_LOG
  readonly limit: number
  readonly capacity: number
  readonly periodUs: number
  readonly wire: readonly number[]
  readonly spanUs: number
  readonly viewSize = 4
  readonly weight: number

  constructor({ limit, periodUs }: SlidingLogParams) {
    super()
    this.limit = limit
    this.capacity = limit
    this.periodUs = periodUs
    this.spanUs = periodUs
    this.wire = [SLIDING_LOG, limit, periodUs]
    this.weight = 1 + Math.ceil(limit / 256)
  }

  open(state: LogState | undefined, nowUs: number, view: number[], at: number, cost: number): boolean {
    if (state === undefined) {
      this.look(newLog(this.periodUs), nowUs, view, at, cost)
      return false
    }
    this.look(under(state, this.limit, this.periodUs, nowUs), nowUs, view, at, cost)
    // A clock that was ahead, or a period that was longer.
    return isFuture(state, nowUs) || lastLapse(state) > nowUs + this.periodUs
  }

  adopt(units: number, nowUs: number, view: number[], at: number): void {
    this.look(this.adopted(units < this.limit ? units : this.limit, nowUs), nowUs, view, at, 0)
  }

  /** The view knows how long, under whatever numbers the state was written. */
  wrote(): boolean {
    return true
  }

  postpone(view: number[], at: number, nowUs: number, _cost: number, waitUs: number): void {
    view[at + 1] = nowUs + waitUs
  }

  take(state: State | undefined, nowUs: number, view: number[], at: number, cost: number): LogState {
    const log = this.log(state, nowUs, view[at] as number)
    append(log, nowUs, cost)
    this.look(log, nowUs, view, at, 0)
    return log
  }

  close(view: readonly number[], at: number, nowUs: number, former?: State): LogState {
    return this.log(former, nowUs, view[at] as number)
  }

  /** The instant at which the run of the charge lapses. */
  receiptUs(_view: readonly number[], _at: number, nowUs: number): number {
    return nowUs + this.periodUs
  }

  tell(view: readonly number[], at: number, nowUs: number, cost: number, status: LimitNumbers): void {
    const used = view[at] as number
    status.limit = this.limit
    status.capacity = this.limit
    status.periodMs = this.periodUs / 1000
    status.remaining = this.room(view, at)
    if (this.limit === 0 || cost > this.limit) status.retryAfterMs = Number.POSITIVE_INFINITY
    else if (cost > 0 && used > this.limit - cost) {
      // Units of another algorithm, that have just been taken over, lapse together.
      const fitsUs = (view[at + 1] as number) || (view[at + 3] as number)
      status.retryAfterMs = Math.max(1, fitsUs - nowUs) / 1000
    }
    if ((view[at + 3] as number) === 0 || this.limit === 0) return
    status.nextMs = ((view[at + 2] as number) - nowUs) / 1000
    status.resetAfterMs = ((view[at + 3] as number) - nowUs) / 1000
  }

  /**
   * N/k units in the same window; where that is below one unit, one unit in k/N windows, so that k
   * instances together keep the rate.
   */
  share(instances: number): Limit {
    if (this.limit === 0 || instances === 1) return this
    if (this.limit >= instances) {
      return new SlidingLog({ limit: Math.floor(this.limit / instances), periodUs: this.periodUs })
    }
    return new SlidingLog({ limit: 1, periodUs: sharePeriodUs(this.periodUs, this.limit, instances) })
  }

  /** The state to go on with: without what has lapsed, and free to be written to. */
  private log(state: State | undefined, nowUs: number, used: number): LogState {
    if (state?.code !== SLIDING_LOG) return this.adopted(used, nowUs)
    const log = under(state as LogState, this.limit, this.periodUs, nowUs)
    return trim(log, nowUs)
  }

  private adopted(units: number, nowUs: number): LogState {
    const log = newLog(this.periodUs)
    if (units > 0) append(log, nowUs, units)
    return log
  }

  private look(log: LogState, nowUs: number, view: number[], at: number, cost: number): void {
    const { limit } = this
    const used = unitsUsed(log, nowUs)
    view[at] = used
    // Who waits behind a whole budget waits for a period more.
    const laterUs = cost > limit ? this.periodUs : 0
    const room = laterUs > 0 ? 2 * limit - cost : limit - cost
    const fitsUs = room >= 0 && used > room ? fitsAt(log, room) : 0
    view[at + 1] = laterUs === 0 || room < 0 ? fitsUs : Math.max(fitsUs, nowUs) + laterUs
    view[at + 2] = used > 0 && limit > 0 ? fitsAt(log, used < limit ? used - 1 : limit - 1) : 0
    view[at + 3] = used > 0 ? lastLapse(log) : 0
  }
}

const HEAD = 33
const RUN = 16

/**
 * Stored: the code, then period (µs), the newest run of a former period (µs), that period (µs), and the units ever
 * charged before the first run; then for each run its instant (µs) and the units ever charged with it; as big-endian
 * doubles: 33 bytes and 16 a run.
 */
export const slidingLogCodec: Codec<LogState> = {
  code: SLIDING_LOG,

  encode({ periodUs, priorUs, priorPeriodUs, base, instants, totals }) {
    const raw = Buffer.allocUnsafe(HEAD + instants.length * RUN)
    raw.writeUInt8(SLIDING_LOG, 0)
    raw.writeDoubleBE(periodUs, 1)
    raw.writeDoubleBE(priorUs, 9)
    raw.writeDoubleBE(priorPeriodUs, 17)
    raw.writeDoubleBE(base, 25)
    for (let i = 0; i < instants.length; i++) {
      raw.writeDoubleBE(instants[i] as number, HEAD + i * RUN)
      raw.writeDoubleBE(totals[i] as number, HEAD + i * RUN + 8)
    }
    return raw
  },

  decode(raw) {
    const count = (raw.length - HEAD) / RUN
    if (raw[0] !== SLIDING_LOG || !Number.isInteger(count) || count < 0 || count > 2 * MAX_LOG) return undefined
    const [periodUs, priorUs, priorPeriodUs, base] = [1, 9, 17, 25].map((at) => raw.readDoubleBE(at)) as [
      number,
      number,
      number,
      number,
    ]
    const instants = Array.from({ length: count }, (_, i) => raw.readDoubleBE(HEAD + i * RUN))
    const totals = Array.from({ length: count }, (_, i) => raw.readDoubleBE(HEAD + i * RUN + 8))
    const [first = 0, last = 0] = [instants[0], instants[count - 1]]
    const [least = base + 1, total = base] = [totals[0], totals[count - 1]]
    const exact = [periodUs, priorUs, priorPeriodUs, base, first, last, least, total].every(
      (x) => x >= 0 && Number.isSafeInteger(x),
    )
    const sound =
      periodUs >= 1 &&
      periodUs <= MAX_SHARE_US &&
      priorPeriodUs < periodUs &&
      first <= last &&
      last <= MAX_EXACT - periodUs &&
      least > base &&
      total <= MAX_TOTAL &&
      total - base <= 2 * MAX_LOG
    return exact && sound ? { code: SLIDING_LOG, periodUs, priorUs, priorPeriodUs, base, instants, totals } : undefined
  },

  used: unitsUsed,

  roomAfterUs(state, nowUs, units) {
    return unitsUsed(state, nowUs) > units ? fitsAt(state, units) - nowUs : 0
  },

  ahead(state, nowUs, spanUs) {
    return isFuture(state, nowUs) || lastLapse(state) > nowUs + spanUs
  },

  lifetimeUs(state, nowUs) {
    const lapseUs = lastLapse(state)
    return lapseUs > nowUs ? lapseUs - nowUs : 0
  },

  give(state, nowUs, units, receiptUs) {
    // 1. without a receipt, of the newest
    if (receiptUs === 0) return giveNewest(state, unitsUsed(state, nowUs), units)
    // 2. else of the run that lapses then, unless it has
    const { instants, periodUs, priorUs, priorPeriodUs } = state
    const formerUs = receiptUs - priorPeriodUs
    const atUs = priorPeriodUs > 0 && formerUs <= priorUs ? formerUs : receiptUs - periodUs
    const place = countUntil(instants, atUs) - 1
    if (place < lapsedRuns(state, nowUs) || instants[place] !== atUs) return 0
    return giveFrom(state, place, units)
  },
}
