import type { Codec, Limit, LimitNumbers, State } from '../../limit.ts'
import { sharePeriodUs } from '../params.ts'
import { type FixedWindowOptions, type FixedWindowParams, fixedWindowParams } from './params.ts'
import { FIXED_WINDOW, type FixedWindowState, windowEnd } from './step.ts'

export type { FixedWindowOptions } from './params.ts'

/**
 * At most `limit` units in each window of one `period`.
 *
 * Law: never more than `limit` units a window, and a cost for which the window has room is never
 * refused. Around the edge of two windows up to 2 × `limit` units can pass within one period.
 * @throws InvalidArgumentError naming the option
 */
export function fixedWindow(options: FixedWindowOptions): Limit {
  return new FixedWindow(fixedWindowParams(options))
}

/** View: the count, and the instant at which the window is over. */
class FixedWindow implements Limit<FixedWindowState> {
  readonly algorithm = 'fixed-window'
  readonly code = FIXED_WINDOW
  readonly limit: number
  readonly capacity: number
  readonly periodUs: number
  readonly wire: readonly number[]
  readonly spanUs: number
  readonly viewSize = 2
  private readonly firstHit: boolean

  constructor(params: FixedWindowParams) {
    this.limit = params.limit
    this.capacity = params.limit
    this.periodUs = params.periodUs
    this.spanUs = params.periodUs
    this.firstHit = params.firstHit
    this.wire = [FIXED_WINDOW, params.limit, params.periodUs, params.firstHit ? 1 : 0]
  }

  open(state: FixedWindowState | undefined, nowUs: number, view: number[], at: number): boolean {
    // 1. no window, or one that is over: a new one
    if (state === undefined || nowUs >= state.endUs) {
      view[at] = 0
      view[at + 1] = windowEnd(nowUs, this.periodUs, this.firstHit)
      return false
    }
    // 2. an open window keeps its count, and its own end ...
    view[at] = state.count
    if (state.endUs <= nowUs + this.periodUs) {
      view[at + 1] = state.endUs
      return false
    }
    // 3. ... unless that is more than one period away: a repair
    view[at + 1] = windowEnd(nowUs, this.periodUs, this.firstHit)
    return true
  }

  adopt(units: number, nowUs: number, view: number[], at: number): void {
    view[at] = units < this.limit ? units : this.limit
    view[at + 1] = windowEnd(nowUs, this.periodUs, this.firstHit)
  }

  admits(view: readonly number[], at: number, cost: number): boolean {
    return this.limit > 0 && (cost === 0 || (view[at] as number) <= this.limit - cost)
  }

  wrote(): boolean {
    return true
  }

  postpone(view: number[], at: number, nowUs: number, _cost: number, waitUs: number): void {
    view[at + 1] = nowUs + waitUs
  }

  charge(view: number[], at: number, cost: number): void {
    view[at] = (view[at] as number) + cost
  }

  close(view: readonly number[], at: number, _nowUs: number, former?: State): FixedWindowState {
    const count = view[at] as number
    const endUs = view[at + 1] as number
    if (former?.code !== FIXED_WINDOW) return { code: FIXED_WINDOW, count, endUs }
    const state = former as FixedWindowState
    state.count = count
    state.endUs = endUs
    return state
  }

  tell(view: readonly number[], at: number, nowUs: number, cost: number, status: LimitNumbers): void {
    const count = view[at] as number
    const leftMs = ((view[at + 1] as number) - nowUs) / 1000
    status.limit = this.limit
    status.capacity = this.limit
    status.periodMs = this.periodUs / 1000
    status.remaining = count < this.limit ? this.limit - count : 0
    if (this.limit === 0 || cost > this.limit) status.retryAfterMs = Number.POSITIVE_INFINITY
    else if (cost > 0 && count > this.limit - cost) status.retryAfterMs = leftMs
    if (count === 0) return
    status.nextMs = leftMs
    status.resetAfterMs = leftMs
  }

  /**
   * N/k units a window; where that is below one unit, one unit in a window of k/N periods from the
   * first hit, so that k instances together keep the rate.
   */
  share(instances: number): Limit {
    if (this.limit === 0 || instances === 1) return this
    const { periodUs, firstHit } = this
    if (this.limit >= instances) {
      return new FixedWindow({ limit: Math.floor(this.limit / instances), periodUs, firstHit })
    }
    return new FixedWindow({ limit: 1, periodUs: sharePeriodUs(periodUs, this.limit, instances), firstHit: true })
  }
}

const SIZE = 17

/** Stored: the code, then count and end (µs), as big-endian doubles: 17 bytes. */
export const fixedWindowCodec: Codec<FixedWindowState> = {
  code: FIXED_WINDOW,

  encode(state) {
    const raw = Buffer.allocUnsafe(SIZE)
    raw.writeUInt8(FIXED_WINDOW, 0)
    raw.writeDoubleBE(state.count, 1)
    raw.writeDoubleBE(state.endUs, 9)
    return raw
  },

  decode(raw) {
    if (raw.length !== SIZE || raw[0] !== FIXED_WINDOW) return undefined
    const count = raw.readDoubleBE(1)
    const endUs = raw.readDoubleBE(9)
    return count >= 0 && Number.isSafeInteger(count) && endUs >= 0 && Number.isSafeInteger(endUs)
      ? { code: FIXED_WINDOW, count, endUs }
      : undefined
  },

  roomAfterUs(state, nowUs, units) {
    return state.count > units && nowUs < state.endUs ? state.endUs - nowUs : 0
  },

  ahead(state, nowUs, spanUs) {
    return state.endUs > nowUs + spanUs
  },

  used(state, nowUs) {
    return nowUs >= state.endUs ? 0 : state.count
  },

  lifetimeUs(state, nowUs) {
    return nowUs >= state.endUs ? 0 : state.endUs - nowUs
  },
}
