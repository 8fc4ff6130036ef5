import type { Duration } from '../../duration.ts'
import { InvalidArgumentError, show } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import { periodOf, unitsOf } from '../params.ts'

export interface FixedWindowOptions {
  /** Units a window, integer ≥ 0; 0 refuses all. */
  limit: number
  /** `'1s'`, `'1m'` … or a number of ms; at most ten years. */
  period: Duration
  /**
   * Where windows begin. `clock` (default): at whole multiples of the period since the Unix epoch,
   * the same for all keys. `first-hit`: at a key's first admitted request.
   */
  align?: 'clock' | 'first-hit'
}

export interface FixedWindowParams {
  readonly limit: number
  readonly periodUs: number
  readonly align: 'clock' | 'first-hit' | 'calendar'
  /** Where the windows of a calendar lie. */
  readonly calendar?: Calendar
}

/** Windows that follow a calendar. */
export interface Calendar {
  /** The window that is open at an instant. */
  windowAt(nowUs: number): { readonly fromUs: number; readonly toUs: number }
  /** How long the longest window is. */
  readonly longestUs: number
  /** Two numbers that differ between calendars whose windows differ. */
  readonly identity: readonly [number, number]
}

export function fixedWindowParams(options: FixedWindowOptions): FixedWindowParams {
  refuseUnknown(options, ['limit', 'period', 'align'], 'fixedWindow')
  const { align = 'clock' } = options
  if (align !== 'clock' && align !== 'first-hit') {
    throw new InvalidArgumentError('align', `${show(align)} is neither 'clock' nor 'first-hit'`)
  }
  return {
    limit: unitsOf(options.limit, 'limit', 0),
    periodUs: periodOf(options.period, 'period'),
    align,
  }
}
