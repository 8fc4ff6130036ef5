import type { Duration } from '../../duration.ts'
import { InvalidArgumentError, show } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import { ceilDiv } from '../exact.ts'
import { periodOf, type Scope, unitsOf } from '../params.ts'

export interface SlidingWindowOptions {
  /** Units in a window, integer from 0 (refuses all) to 562,949,953,421,312. */
  limit: number
  /** `'1s'`, `'1m'` … or a number of ms; at most ten years. */
  period: Duration
  /** Into how many slices a window is cut, integer from 1 to 60, default 10. More of them are more exact, and longer states. */
  slices?: number
  /** Whether the oldest slice counts whole until all of it has lapsed. Default false: by the part that has not. */
  strict?: boolean
  /** `instance`: each process has a budget of its own, in its memory. */
  scope?: Scope
}

export interface SlidingWindowParams {
  readonly limit: number
  readonly periodUs: number
  readonly slices: number
  /** How long a slice is. */
  readonly sliceUs: number
  readonly strict: boolean
}

export const MAX_SLICES = 60

/** The largest limit: twice as much, and as much again in the slice that lapses, can still be parted exactly. */
export const MAX_WINDOW_UNITS = 2 ** 49

/** Up to here, a count can be parted exactly. */
export const MAX_TOTAL = 4 * MAX_WINDOW_UNITS

/** Checks the options. @throws InvalidArgumentError */
export function slidingWindowParams(options: SlidingWindowOptions): SlidingWindowParams {
  refuseUnknown(options, ['limit', 'period', 'slices', 'strict', 'scope'], 'slidingWindow')
  const { slices = 10, strict = false } = options
  const limit = unitsOf(options.limit, 'limit', 0)
  if (limit > MAX_WINDOW_UNITS) {
    throw new InvalidArgumentError(
      'limit',
      `${limit} in a sliding window leaves the range of exact arithmetic; limit ${MAX_WINDOW_UNITS} or less fits`,
      'HEADGATE_OUT_OF_RANGE',
    )
  }
  if (!Number.isInteger(slices) || slices < 1 || slices > MAX_SLICES) {
    throw new InvalidArgumentError('slices', `${show(slices)} is not an integer from 1 to ${MAX_SLICES}`)
  }
  if (typeof strict !== 'boolean') throw new InvalidArgumentError('strict', `${show(strict)} is neither true nor false`)
  return cut(limit, periodOf(options.period, 'period'), slices, strict)
}

/** Cuts the period into slices of whole µs. */
export function cut(limit: number, periodUs: number, slices: number, strict: boolean): SlidingWindowParams {
  return { limit, periodUs, slices, sliceUs: ceilDiv(periodUs, slices), strict }
}
