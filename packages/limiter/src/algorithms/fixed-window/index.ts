import type { Codec, Division, Limit, LimitNumbers, State } from '../../limit.ts'
import { FIXED_WINDOW } from '../codes.ts'
import { Counted } from '../counted.ts'
import { ceilDiv, MAX_EXACT } from '../exact.ts'
import { scoped, sharePeriodUs } from '../params.ts'
import type { Window } from './calendar.ts'
import { type FixedWindowOptions, type FixedWindowParams, fixedWindowParams } from './params.ts'
import { type FixedWindowState, roll, type Span, windowAhead } from './step.ts'

export type { FixedWindowOptions } from './params.ts'

/**
 * At most `limit` units in each window of one `period`.
 *
 * Law: never more than `limit` units a window, and a cost for which the window has room is never
 * refused. Around the edge of two windows up to 2 × `limit` units can pass within one period.
 * @throws InvalidArgumentError naming the option
 */
export function fixedWindow(options: FixedWindowOptions): Limit {
  return scoped(new FixedWindow(fixedWindowParams(options)), options.scope)
}

const ALIGN = { clock: 0, 'first-hit': 1, calendar: 2 } as const

/** View: the count, also of what is booked ahead, and the instant at which the window is over. */
class FixedWindow extends Counted implements Limit<FixedWindowState> {
  readonly algorithm = 'fixed-window'
  readonly code = FIXED_WINDOW
  readonly limit: number
  readonly capacity: number
  readonly periodUs: number
  readonly wire: readonly number[]
  readonly spanUs: number
  readonly viewSize = 2
  readonly books: boolean
  readonly leases = true
  private readonly params: FixedWindowParams
  /** What the script rolls windows by; of a calendar, the longest there is. */
  private readonly longestUs: number
  /** What the script is told of a calendar's window, made once for each. */
  private sent: Window | undefined
  private sentWire: readonly number[] = []

  constructor(params: FixedWindowParams) {
    super()
    this.params = params
    this.limit = params.limit
    this.capacity = params.limit
    this.periodUs = params.periodUs
    this.longestUs = params.calendar?.longestUs ?? params.periodUs
    this.spanUs = this.longestUs
    this.books = params.calendar === undefined
    this.wire = [
      FIXED_WINDOW,
      params.limit,
      this.longestUs,
      ALIGN[params.align],
      ...(params.calendar?.identity ?? [0, 0]),
    ]
  }

  /** Of a calendar: with the window that is open then. */
  wireAt(nowUs: number): readonly number[] {
    const { calendar, limit } = this.params
    if (calendar === undefined) return this.wire
    const window = calendar.windowAt(nowUs)
    if (window !== this.sent) {
      this.sent = window
      this.sentWire = [FIXED_WINDOW, limit, this.longestUs, ALIGN.calendar, window.fromUs, window.toUs]
    }
    return this.sentWire
  }

  open(state: FixedWindowState | undefined, nowUs: number, view: number[], at: number): boolean {
    // 1. no window, or one that is over: a new one
    const span = state === undefined ? NONE : roll(state, nowUs)
    const { count, endUs } = span
    if (endUs === 0) {
      view[at] = 0
      view[at + 1] = this.windowEnd(nowUs)
      return false
    }
    // 2. an open window keeps its count, and its own end ...
    const { periodUs } = state as FixedWindowState
    view[at] = periodUs > 0 || count < this.limit ? count : this.limit
    if (endUs <= nowUs + this.longestUs) {
      view[at + 1] = endUs
      return false
    }
    // 3. ... unless that is more than one period away: a repair
    if (count > this.limit) view[at] = this.limit
    view[at + 1] = this.windowEnd(nowUs)
    return true
  }

  adopt(units: number, nowUs: number, view: number[], at: number): void {
    view[at] = units < this.limit ? units : this.limit
    view[at + 1] = this.windowEnd(nowUs)
  }

  /** Of a calendar this is an estimate: its windows differ. */
  override place(view: readonly number[], at: number, nowUs: number, cost: number): number {
    if (this.limit === 0 || cost > this.limit) return -1
    const ahead = windowAhead(this.limit, view[at] as number, cost)
    if (ahead === 0) return 0
    return (view[at + 1] as number) - nowUs + (ahead - 1) * this.longestUs
  }

  /** All units of a window have one instant. */
  divide(left: number): Division {
    return { left, soonerUs: 0, lessUs: 0 }
  }

  wrote(state: FixedWindowState): boolean {
    return state.periodUs === 0 || (state.limit === this.limit && state.periodUs === this.longestUs)
  }

  postpone(view: number[], at: number, nowUs: number, _cost: number, waitUs: number): void {
    if ((view[at] as number) > this.limit) view[at] = this.limit
    view[at + 1] = nowUs + waitUs
  }

  take(state: State | undefined, nowUs: number, view: number[], at: number, cost: number): FixedWindowState {
    // A cost does not straddle two windows.
    const count = view[at] as number
    const ahead = cost <= this.limit ? windowAhead(this.limit, count, cost) : 0
    const from = ahead * this.limit
    view[at] = (count > from ? count : from) + cost
    return this.close(view, at, nowUs, state)
  }

  close(view: readonly number[], at: number, _nowUs: number, former?: State): FixedWindowState {
    const count = view[at] as number
    const endUs = view[at + 1] as number
    const booked = count > this.limit && this.params.calendar === undefined
    const limit = booked ? this.limit : 0
    const periodUs = booked ? this.longestUs : 0
    const state = former as FixedWindowState | undefined
    // One that no longer ends when its receipts say is another: who keeps it has to see both.
    if (state?.code !== FIXED_WINDOW || endUs < state.endUs)
      return { code: FIXED_WINDOW, count, endUs, limit, periodUs }
    state.count = count
    state.endUs = endUs
    state.limit = limit
    state.periodUs = periodUs
    return state
  }

  /** The end of the window that the charge is in. */
  receiptUs(view: readonly number[], at: number): number {
    const count = view[at] as number
    const endUs = view[at + 1] as number
    if (count <= this.limit || this.params.calendar !== undefined) return endUs
    return endUs + (ceilDiv(count, this.limit) - 1) * this.longestUs
  }

  leaseEndUs(view: readonly number[], at: number): number {
    return view[at + 1] as number
  }

  tell(view: readonly number[], at: number, nowUs: number, cost: number, status: LimitNumbers): void {
    const count = view[at] as number
    const leftUs = (view[at + 1] as number) - nowUs
    status.limit = this.limit
    status.capacity = this.limit
    status.periodMs = this.periodUs / 1000
    status.remaining = this.room(view, at)
    if (this.limit === 0 || cost > this.limit) status.retryAfterMs = Number.POSITIVE_INFINITY
    else if (cost > 0 && count > this.limit - cost) {
      status.retryAfterMs = (leftUs + this.windows(windowAhead(this.limit, count, cost))) / 1000
    }
    if (count === 0) return
    // What is booked ahead fills whole windows; a view that stands for a wait has one.
    const full = this.limit === 0 ? 0 : Math.floor(count / this.limit)
    status.nextMs = (leftUs + this.windows(full)) / 1000
    status.resetAfterMs = (leftUs + this.windows(this.limit === 0 ? 0 : ceilDiv(count, this.limit))) / 1000
  }

  /** How long the windows behind the open one take until `ahead` of them have begun, in µs. */
  private windows(ahead: number): number {
    return ahead > 1 ? (ahead - 1) * this.longestUs : 0
  }

  private windowEnd(nowUs: number): number {
    const { align, calendar, periodUs } = this.params
    if (calendar !== undefined) return calendar.windowAt(nowUs).toUs
    return align === 'first-hit' ? nowUs + periodUs : nowUs - (nowUs % periodUs) + periodUs
  }

  /**
   * N/k units a window; where that is below one unit, one unit in a window of k/N periods from the
   * first hit, so that k instances together keep the rate.
   */
  share(instances: number): Limit {
    if (this.limit === 0 || instances === 1) return this
    if (this.limit >= instances) {
      return new FixedWindow({ ...this.params, limit: Math.floor(this.limit / instances) })
    }
    const periodUs = sharePeriodUs(this.longestUs, this.limit, instances)
    return new FixedWindow({ limit: 1, periodUs, align: 'first-hit' })
  }
}

const NONE: Span = { count: 0, endUs: 0 }
const SIZE = 17
/** With places in line. */
const LONG_SIZE = 33

/**
 * Stored: the code, then count and end (µs), as big-endian doubles: 17 bytes; and limit and period (µs) of windows that
 * are booked ahead, where some are.
 */
export const fixedWindowCodec: Codec<FixedWindowState> = {
  code: FIXED_WINDOW,

  encode({ count, endUs, limit, periodUs }) {
    const raw = Buffer.allocUnsafe(periodUs > 0 ? LONG_SIZE : SIZE)
    raw.writeUInt8(FIXED_WINDOW, 0)
    raw.writeDoubleBE(count, 1)
    raw.writeDoubleBE(endUs, 9)
    if (periodUs > 0) {
      raw.writeDoubleBE(limit, SIZE)
      raw.writeDoubleBE(periodUs, SIZE + 8)
    }
    return raw
  },

  decode(raw) {
    if ((raw.length !== SIZE && raw.length !== LONG_SIZE) || raw[0] !== FIXED_WINDOW) return undefined
    const count = raw.readDoubleBE(1)
    const endUs = raw.readDoubleBE(9)
    const booked = raw.length === LONG_SIZE
    const limit = booked ? raw.readDoubleBE(SIZE) : 0
    const periodUs = booked ? raw.readDoubleBE(SIZE + 8) : 0
    const exact = [count, endUs, limit, periodUs].every((x) => x >= 0 && Number.isSafeInteger(x))
    const sound = !booked || (limit >= 1 && periodUs >= 1 && ceilDiv(count, limit) * periodUs <= MAX_EXACT - endUs)
    return exact && sound ? { code: FIXED_WINDOW, count, endUs, limit, periodUs } : undefined
  },

  roomAfterUs(state, nowUs, units) {
    const { count, endUs } = roll(state, nowUs)
    if (count <= units) return 0
    if (state.periodUs === 0 || count <= state.limit) return endUs - nowUs
    // As many windows as it takes until no more than that is left.
    return endUs - nowUs + (ceilDiv(count - units, state.limit) - 1) * state.periodUs
  },

  ahead(state, nowUs, spanUs) {
    return roll(state, nowUs).endUs > nowUs + spanUs
  },

  used(state, nowUs) {
    return roll(state, nowUs).count
  },

  lifetimeUs(state, nowUs) {
    const { count, endUs } = roll(state, nowUs)
    if (endUs === 0) return 0
    if (state.periodUs === 0 || count <= state.limit) return endUs - nowUs
    return endUs - nowUs + (ceilDiv(count, state.limit) - 1) * state.periodUs
  },

  give(state, nowUs, units, receiptUs) {
    const { count, endUs } = roll(state, nowUs)
    if (endUs === 0) return 0
    state.count = count
    state.endUs = endUs
    // 1. without a receipt, down to nothing
    let from = 0
    if (receiptUs > 0) {
      const ahead = state.periodUs > 0 && count > state.limit ? ceilDiv(count, state.limit) - 1 : 0
      // 2. only what is in the last window that anything is in: what is behind it keeps its place
      if (receiptUs !== endUs + ahead * state.periodUs) return 0
      from = ahead * state.limit
    }
    const back = units < count - from ? units : count - from
    state.count = count - back
    return back
  },

  spend(state, atUs, units) {
    // A window that is over by then took them along.
    if (atUs >= state.endUs) return
    const count = state.count + units
    state.count = count < MAX_EXACT ? count : MAX_EXACT
  },
}
