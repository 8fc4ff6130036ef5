import type { Codec, Limit, LimitNumbers, State } from '../../limit.ts'
import { SLIDING_WINDOW } from '../codes.ts'
import { MAX_EXACT } from '../exact.ts'
import { MAX_SHARE_US, scoped, sharePeriodUs } from '../params.ts'
import {
  cut,
  MAX_SLICES,
  MAX_TOTAL,
  type SlidingWindowOptions,
  type SlidingWindowParams,
  slidingWindowParams,
} from './params.ts'
import { type Cut, emptyAt, fitsAt, kept, lapseOf, lay, oldestSlice, usedOf, type WindowState } from './step.ts'

export type { SlidingWindowOptions } from './params.ts'

/**
 * At most `limit` units in the last `period`, counted by slices of d = period/`slices` (rounded up to the µs).
 *
 * Law, with N = `limit` and P = `period`. `strict`: never more than N in any window of length P; a refusal may come up
 * to one slice too late. Otherwise the oldest slice counts by the part of it that is still in the window: never more
 * than N in any window of (slices − 1)/slices · P, and in one of P at most N + what of its oldest slice had been taken
 * for lapsed: less than 2·N. Either way a cost is admitted that leaves at most N in the last P + d.
 * @throws InvalidArgumentError naming the option; `HEADGATE_OUT_OF_RANGE` where counts would pass the exact range
 */
export function slidingWindow(options: SlidingWindowOptions): Limit {
  return scoped(new SlidingWindow(slidingWindowParams(options)), options.scope)
}

/**
 * View: units used; the instant at which the cost fits if nobody comes (0: it fits now); the instants at which less
 * is used, and nothing (0: nothing is).
 */
class SlidingWindow implements Limit<WindowState> {
  readonly algorithm = 'sliding-window'
  readonly code = SLIDING_WINDOW
  readonly limit: number
  readonly capacity: number
  readonly periodUs: number
  readonly wire: readonly number[]
  readonly spanUs: number
  readonly viewSize = 4
  readonly weight: number
  private readonly params: SlidingWindowParams

  constructor(params: SlidingWindowParams) {
    this.params = params
    this.limit = params.limit
    this.capacity = params.limit
    this.periodUs = params.periodUs
    this.spanUs = params.periodUs + params.sliceUs - 1
    this.wire = [SLIDING_WINDOW, params.limit, params.periodUs, params.sliceUs, params.strict ? 1 : 0]
    this.weight = 1 + Math.ceil(params.slices / 16)
  }

  open(state: WindowState | undefined, nowUs: number, view: number[], at: number, cost: number): boolean {
    this.look(lay(this.params, state, nowUs), nowUs, view, at, cost)
    if (state === undefined) return false
    // A clock that was ahead, or a period that was longer.
    return state.atUs > nowUs || lapseAt(state) > nowUs + this.spanUs
  }

  adopt(units: number, nowUs: number, view: number[], at: number): void {
    this.look([units < this.limit ? units : this.limit], nowUs, view, at, 0)
  }

  admits(view: readonly number[], at: number, cost: number): boolean {
    return this.limit > 0 && (cost === 0 || (view[at] as number) <= this.limit - cost)
  }

  room(view: readonly number[], at: number): number {
    const used = view[at] as number
    return used < this.limit ? this.limit - used : 0
  }

  /** The view knows how long, under whatever numbers the state was written. */
  wrote(): boolean {
    return true
  }

  postpone(view: number[], at: number, nowUs: number, _cost: number, waitUs: number): void {
    view[at + 1] = nowUs + waitUs
  }

  take(state: State | undefined, nowUs: number, view: number[], at: number, cost: number): WindowState {
    const counts = this.counts(state, nowUs, view[at] as number)
    const last = counts.length - 1
    counts[last] = (counts[last] as number) + cost
    this.look(counts, nowUs, view, at, 0)
    return this.state(counts, nowUs)
  }

  close(view: readonly number[], at: number, nowUs: number, former?: State): WindowState {
    return this.state(this.counts(former, nowUs, view[at] as number), nowUs)
  }

  /** The instant at which the slice of the charge has lapsed. */
  receiptUs(_view: readonly number[], _at: number, nowUs: number): number {
    return lapseOf(this.params, Math.floor(nowUs / this.params.sliceUs))
  }

  tell(view: readonly number[], at: number, nowUs: number, cost: number, status: LimitNumbers): void {
    const used = view[at] as number
    status.limit = this.limit
    status.capacity = this.limit
    status.periodMs = this.periodUs / 1000
    status.remaining = this.room(view, at)
    if (this.limit === 0 || cost > this.limit) status.retryAfterMs = Number.POSITIVE_INFINITY
    else if (cost > 0 && used > this.limit - cost) {
      // Units of another algorithm, that have just been taken over, are in one slice.
      const fitsUs = (view[at + 1] as number) || fitsAt(this.params, [used], nowUs, this.limit - cost)
      status.retryAfterMs = (fitsUs - nowUs) / 1000
    }
    if (used === 0 || this.limit === 0) return
    status.nextMs = ((view[at + 2] as number) - nowUs) / 1000
    status.resetAfterMs = ((view[at + 3] as number) - nowUs) / 1000
  }

  /**
   * N/k units in the same window; where that is below one unit, one unit in k/N windows, so that k
   * instances together keep the rate.
   */
  share(instances: number): Limit {
    if (this.limit === 0 || instances === 1) return this
    const { periodUs, slices, strict } = this.params
    if (this.limit >= instances) {
      return new SlidingWindow({ ...this.params, limit: Math.floor(this.limit / instances) })
    }
    return new SlidingWindow(cut(1, sharePeriodUs(periodUs, this.limit, instances), slices, strict))
  }

  private counts(state: State | undefined, nowUs: number, used: number): number[] {
    return state?.code === SLIDING_WINDOW ? lay(this.params, state as WindowState, nowUs) : [used]
  }

  private state(counts: readonly number[], nowUs: number): WindowState {
    const { periodUs, sliceUs } = this.params
    return { code: SLIDING_WINDOW, periodUs, sliceUs, atUs: nowUs, counts: kept(counts) }
  }

  private look(counts: readonly number[], nowUs: number, view: number[], at: number, cost: number): void {
    const { params, limit } = this
    const used = usedOf(params, counts, nowUs)
    view[at] = used
    view[at + 1] = cost <= limit ? fitsAt(params, counts, nowUs, limit - cost) : 0
    view[at + 2] = used > 0 && limit > 0 ? fitsAt(params, counts, nowUs, used < limit ? used - 1 : limit - 1) : 0
    view[at + 3] = emptyAt(params, counts, Math.floor(nowUs / params.sliceUs))
  }
}

/** A state by itself counts as strict, by its own numbers. */
function cutOf({ periodUs, sliceUs }: WindowState): Cut {
  return { limit: MAX_EXACT, periodUs, sliceUs, strict: true }
}

/** The instant at which nothing of a state is in use any more. */
function lapseAt(state: WindowState): number {
  return emptyAt(state, state.counts, Math.floor(state.atUs / state.sliceUs))
}

const HEAD = 25

/**
 * Stored: the code, then period and slice (µs), the instant of the newest charge (µs), and the count of each slice up to
 * that one, oldest first, as big-endian doubles: 25 bytes and 8 a slice.
 */
export const slidingWindowCodec: Codec<WindowState> = {
  code: SLIDING_WINDOW,

  encode({ periodUs, sliceUs, atUs, counts }) {
    const raw = Buffer.allocUnsafe(HEAD + counts.length * 8)
    raw.writeUInt8(SLIDING_WINDOW, 0)
    raw.writeDoubleBE(periodUs, 1)
    raw.writeDoubleBE(sliceUs, 9)
    raw.writeDoubleBE(atUs, 17)
    for (let i = 0; i < counts.length; i++) raw.writeDoubleBE(counts[i] as number, HEAD + i * 8)
    return raw
  },

  decode(raw) {
    const size = (raw.length - HEAD) / 8
    if (raw[0] !== SLIDING_WINDOW || !Number.isInteger(size) || size < 1 || size > MAX_SLICES + 1) return undefined
    const [periodUs, sliceUs, atUs] = [1, 9, 17].map((at) => raw.readDoubleBE(at)) as [number, number, number]
    const counts = Array.from({ length: size }, (_, i) => raw.readDoubleBE(HEAD + i * 8))
    if (![periodUs, sliceUs, atUs, ...counts].every((x) => x >= 0 && Number.isSafeInteger(x))) return undefined
    const sound =
      sliceUs >= 1 &&
      sliceUs <= periodUs &&
      periodUs <= MAX_SHARE_US &&
      periodUs <= MAX_SLICES * sliceUs &&
      (size - 1) * sliceUs < periodUs + sliceUs &&
      atUs <= MAX_EXACT - periodUs - sliceUs
    let total = 0
    for (const count of counts) total += count
    return sound && total <= MAX_TOTAL ? { code: SLIDING_WINDOW, periodUs, sliceUs, atUs, counts } : undefined
  },

  used(state, nowUs) {
    const cut = cutOf(state)
    return usedOf(cut, lay(cut, state, nowUs), nowUs)
  },

  roomAfterUs(state, nowUs, units) {
    const cut = cutOf(state)
    const atUs = fitsAt(cut, lay(cut, state, nowUs), nowUs, units)
    return atUs > 0 ? atUs - nowUs : 0
  },

  ahead(state, nowUs, spanUs) {
    return state.atUs > nowUs || lapseAt(state) > nowUs + spanUs
  },

  lifetimeUs(state, nowUs) {
    const lapseUs = lapseAt(state)
    return lapseUs > nowUs ? lapseUs - nowUs : 0
  },

  give(state, nowUs, units, receiptUs) {
    const { periodUs, sliceUs, counts } = state
    const newest = Math.floor(state.atUs / sliceUs)
    const first = newest - counts.length + 1
    // 1. of the slice that lapses then, or without a receipt of the newest that are in the window
    let from = newest
    let down = oldestSlice(periodUs, sliceUs, nowUs)
    if (receiptUs > 0) {
      if (receiptUs <= nowUs) return 0
      from = Math.floor((receiptUs + 1 - periodUs) / sliceUs) - 1
      down = from
    }
    if (from > newest) return 0
    // 2. as much as is there
    let left = units
    for (let slice = from; slice >= down && slice >= first && left > 0; slice--) {
      const count = counts[slice - first] as number
      const back = left < count ? left : count
      counts[slice - first] = count - back
      left -= back
    }
    return units - left
  },
}
