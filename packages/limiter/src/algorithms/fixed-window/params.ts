import type { Duration } from '../../duration.ts'
import { InvalidArgumentError, show } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import { periodOf, type Scope, unitsOf } from '../params.ts'
import { CALENDAR_PERIODS, type Calendar, calendarOf, isCalendarPeriod } from './calendar.ts'

export interface FixedWindowOptions {
  /** Units a window, integer ≥ 0; 0 refuses all. */
  limit: number
  /**
   * `'1s'`, `'1m'` … or a number of ms; at most ten years. With `align: 'calendar'`: `'minute'`, `'hour'`, `'day'`,
   * `'week'`, `'month'` or `'year'`.
   */
  period: Duration
  /**
   * Where windows begin. `clock` (default): at whole multiples of the period since the Unix epoch,
   * the same for all keys. `first-hit`: at a key's first admitted request. `calendar`: with the
   * minutes, days or months of a time zone.
   */
  align?: 'clock' | 'first-hit' | 'calendar'
  /** Of a calendar: an IANA name such as `'Asia/Shanghai'`; default `'UTC'`. */
  timeZone?: string
  /**
   * The day that a calendar's window begins with. Of a week: 1 (Monday, default) to 7. Of a month: 1 (default) to 31; a
   * month that lacks it begins with its last day.
   */
  anchorDay?: number
  /** `instance`: each process has a budget of its own, in its memory. */
  scope?: Scope
}

export interface FixedWindowParams {
  readonly limit: number
  readonly periodUs: number
  readonly align: 'clock' | 'first-hit' | 'calendar'
  /** Where the windows of a calendar lie. */
  readonly calendar?: Calendar
}

export function fixedWindowParams(options: FixedWindowOptions): FixedWindowParams {
  refuseUnknown(options, ['limit', 'period', 'align', 'timeZone', 'anchorDay', 'scope'], 'fixedWindow')
  const { align = 'clock', period, timeZone, anchorDay } = options
  if (align !== 'clock' && align !== 'first-hit' && align !== 'calendar') {
    throw new InvalidArgumentError('align', `${show(align)} is none of 'clock', 'first-hit' and 'calendar'`)
  }
  const limit = unitsOf(options.limit, 'limit', 0)
  if (align === 'calendar') {
    if (!isCalendarPeriod(period)) {
      const known = CALENDAR_PERIODS.map((name) => `'${name}'`).join(', ')
      throw new InvalidArgumentError('period', `${show(period)} is no period of a calendar; write one of ${known}`)
    }
    const calendar = calendarOf(period, timeZone, anchorDay)
    return { limit, periodUs: calendar.nominalUs, align, calendar }
  }
  const own = timeZone !== undefined ? 'timeZone' : anchorDay !== undefined ? 'anchorDay' : undefined
  if (own !== undefined) throw new InvalidArgumentError(own, "needs align: 'calendar'; add that, or leave it out")
  if (isCalendarPeriod(period)) {
    throw new InvalidArgumentError(
      'period',
      `'${period}' needs align: 'calendar'; add that, or write a duration such as '1d'`,
    )
  }
  return { limit, periodUs: periodOf(period, 'period'), align }
}
