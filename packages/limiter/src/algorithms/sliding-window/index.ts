import type { Codec, Limit, LimitNumbers, State } from '../../limit.ts'
import { SLIDING_WINDOW } from '../codes.ts'
import { Counted } from '../counted.ts'
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
import {
  type Cut,
  emptyAt,
  firstSlice,
  fitsAt,
  isFuture,
  kept,
  type Laid,
  lapseOf,
  lay,
  oldestSlice,
  type Segment,
  usedOf,
  type WindowState,
} from './step.ts'

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
class SlidingWindow extends Counted implements Limit<WindowState> {
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
    super()
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
    return isFuture(state, nowUs) || lapseAt(state) > nowUs + this.spanUs
  }

  adopt(units: number, nowUs: number, view: number[], at: number): void {
    this.look(justNow(units < this.limit ? units : this.limit), nowUs, view, at, 0)
  }

  /** The view knows how long, under whatever numbers the state was written. */
  wrote(): boolean {
    return true
  }

  postpone(view: number[], at: number, nowUs: number, _cost: number, waitUs: number): void {
    view[at + 1] = nowUs + waitUs
  }

  take(state: State | undefined, nowUs: number, view: number[], at: number, cost: number): WindowState {
    const laid = this.laid(state, nowUs, view[at] as number)
    const last = laid.counts.length - 1
    laid.counts[last] = (laid.counts[last] as number) + cost
    this.look(laid, nowUs, view, at, 0)
    return this.state(laid, nowUs)
  }

  close(view: readonly number[], at: number, nowUs: number, former?: State): WindowState {
    return this.state(this.laid(former, nowUs, view[at] as number), nowUs)
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
      const fitsUs = (view[at + 1] as number) || fitsAt(this.params, justNow(used), nowUs, this.limit - cost)
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
    const { periodUs, slices, strict } = this.params
    if (this.limit >= instances) {
      return new SlidingWindow({ ...this.params, limit: Math.floor(this.limit / instances) })
    }
    return new SlidingWindow(cut(1, sharePeriodUs(periodUs, this.limit, instances), slices, strict))
  }

  private laid(state: State | undefined, nowUs: number, used: number): Laid {
    return state?.code === SLIDING_WINDOW ? lay(this.params, state as WindowState, nowUs) : justNow(used)
  }

  private state(laid: Laid, nowUs: number): WindowState {
    return { code: SLIDING_WINDOW, newest: kept(this.params, laid, nowUs), other: laid.other }
  }

  private look(laid: Laid, nowUs: number, view: number[], at: number, cost: number): void {
    const { params, limit } = this
    const used = usedOf(params, laid, nowUs)
    view[at] = used
    // Who waits behind a whole budget waits for a period more.
    const laterUs = cost > limit ? this.periodUs : 0
    const room = laterUs > 0 ? 2 * limit - cost : limit - cost
    const fitsUs = room >= 0 ? fitsAt(params, laid, nowUs, room) : 0
    view[at + 1] = laterUs === 0 || room < 0 ? fitsUs : Math.max(fitsUs, nowUs) + laterUs
    view[at + 2] = used > 0 && limit > 0 ? fitsAt(params, laid, nowUs, used < limit ? used - 1 : limit - 1) : 0
    const ownUs = emptyAt({ ...params, atUs: nowUs, counts: laid.counts })
    const otherUs = laid.other === undefined ? 0 : emptyAt(laid.other)
    view[at + 3] = ownUs > otherUs ? ownUs : otherUs
  }
}

/** Units that are counted as charged now. */
function justNow(units: number): Laid {
  return { counts: [units], other: undefined }
}

/** A state by itself counts as strict, by its own numbers. */
function cutOf({ newest: { periodUs, sliceUs } }: WindowState): Cut {
  return { limit: MAX_EXACT, periodUs, sliceUs, strict: true }
}

/** The instant at which nothing of a state is in use any more. */
function lapseAt({ newest, other }: WindowState): number {
  const newestUs = emptyAt(newest)
  const otherUs = other === undefined ? 0 : emptyAt(other)
  return newestUs > otherUs ? newestUs : otherUs
}

const HEAD = 24

function write(raw: Buffer, from: number, { periodUs, sliceUs, atUs, counts }: Segment): void {
  raw.writeDoubleBE(periodUs, from)
  raw.writeDoubleBE(sliceUs, from + 8)
  raw.writeDoubleBE(atUs, from + 16)
  for (let i = 0; i < counts.length; i++) raw.writeDoubleBE(counts[i] as number, from + HEAD + i * 8)
}

function read(raw: Buffer, from: number, size: number): Segment | undefined {
  if (!Number.isInteger(size) || size < 1 || size > MAX_SLICES + 1) return undefined
  const numbers = Array.from({ length: size + 3 }, (_, i) => raw.readDoubleBE(from + i * 8))
  if (!numbers.every((x) => x >= 0 && Number.isSafeInteger(x))) return undefined
  const [periodUs, sliceUs, atUs, ...counts] = numbers as [number, number, number, ...number[]]
  const sound =
    sliceUs >= 1 &&
    sliceUs <= periodUs &&
    periodUs <= MAX_SHARE_US &&
    periodUs <= MAX_SLICES * sliceUs &&
    (size - 1) * sliceUs < periodUs + sliceUs &&
    atUs <= MAX_EXACT - periodUs - sliceUs
  return sound ? { periodUs, sliceUs, atUs, counts } : undefined
}

/**
 * Stored: the code and, as big-endian doubles, how many counts there are, period and slice (µs), the instant of the
 * newest charge (µs), and the count of each slice up to that one, oldest first: 33 bytes and 8 a slice. Behind them, if
 * anything is left of it, the same without its number of counts for what was charged under another period or slice.
 */
export const slidingWindowCodec: Codec<WindowState> = {
  code: SLIDING_WINDOW,

  encode({ newest, other }) {
    const size = 9 + HEAD + newest.counts.length * 8
    const raw = Buffer.allocUnsafe(size + (other === undefined ? 0 : HEAD + other.counts.length * 8))
    raw.writeUInt8(SLIDING_WINDOW, 0)
    raw.writeDoubleBE(newest.counts.length, 1)
    write(raw, 9, newest)
    if (other !== undefined) write(raw, size, other)
    return raw
  },

  decode(raw) {
    if (raw[0] !== SLIDING_WINDOW || raw.length < 9 + HEAD) return undefined
    const count = raw.readDoubleBE(1)
    const size = 9 + HEAD + count * 8
    const newest = raw.length >= size ? read(raw, 9, count) : undefined
    const other = raw.length > size ? read(raw, size, (raw.length - size - HEAD) / 8) : undefined
    if (newest === undefined || (raw.length > size && other === undefined)) return undefined
    let total = 0
    for (const each of newest.counts) total += each
    for (const each of other?.counts ?? []) total += each
    const two = other === undefined || other.periodUs !== newest.periodUs || other.sliceUs !== newest.sliceUs
    return two && total <= MAX_TOTAL ? { code: SLIDING_WINDOW, newest, other } : undefined
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
    return isFuture(state, nowUs) || lapseAt(state) > nowUs + spanUs
  },

  lifetimeUs(state, nowUs) {
    const lapseUs = lapseAt(state)
    return lapseUs > nowUs ? lapseUs - nowUs : 0
  },

  give({ newest, other }, nowUs, units, receiptUs) {
    const back = give(newest, nowUs, units, receiptUs)
    if (other === undefined || back === units || (receiptUs > 0 && back > 0)) return back
    return back + give(other, nowUs, units - back, receiptUs)
  },
}

function give(segment: Segment, nowUs: number, units: number, receiptUs: number): number {
  const { periodUs, sliceUs, counts } = segment
  const first = firstSlice(segment)
  // 1. without a receipt, of the newest that are in the window
  let from = first + counts.length - 1
  let down = oldestSlice(periodUs, sliceUs, nowUs)
  // 2. else of the slice that lapses then, unless it has
  if (receiptUs > 0) {
    const endUs = receiptUs + 1 - periodUs
    if (receiptUs <= nowUs || endUs % sliceUs !== 0 || endUs / sliceUs - 1 > from) return 0
    from = endUs / sliceUs - 1
    down = from
  }
  // 3. as much as is there
  let left = units
  for (let slice = from; slice >= down && slice >= first && left > 0; slice--) {
    const count = counts[slice - first] as number
    const back = left < count ? left : count
    counts[slice - first] = count - back
    left -= back
  }
  return units - left
}
