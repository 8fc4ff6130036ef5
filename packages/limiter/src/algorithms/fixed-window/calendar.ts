import { createHash } from 'node:crypto'
import { InvalidArgumentError, show } from '../../errors.ts'
import { type Zone, zoneOf } from './zone.ts'

/** Windows that follow a calendar. */
export interface Calendar {
  /** The window that is open at an instant; the same object while it is. */
  windowAt(nowUs: number): Window
  /** What a window lasts by name: a month is 30 days, a year 365. */
  readonly nominalUs: number
  /** How long the longest window is. */
  readonly longestUs: number
  /** Two numbers that differ between calendars whose windows differ. */
  readonly identity: readonly [number, number]
}

/** From an instant on, until just before another. */
export interface Window {
  readonly fromUs: number
  readonly toUs: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Periods of a calendar, with what they last by name and at most: clocks are set back by up to two hours. */
const PERIODS = {
  minute: { nominalMs: MINUTE_MS, longestMs: MINUTE_MS },
  hour: { nominalMs: HOUR_MS, longestMs: HOUR_MS },
  day: { nominalMs: DAY_MS, longestMs: DAY_MS + 2 * HOUR_MS },
  week: { nominalMs: 7 * DAY_MS, longestMs: 7 * DAY_MS + 2 * HOUR_MS },
  month: { nominalMs: 30 * DAY_MS, longestMs: 31 * DAY_MS + 2 * HOUR_MS },
  year: { nominalMs: 365 * DAY_MS, longestMs: 366 * DAY_MS + 2 * HOUR_MS },
} as const

export type CalendarPeriod = keyof typeof PERIODS

export const CALENDAR_PERIODS = Object.keys(PERIODS) as readonly CalendarPeriod[]

export function isCalendarPeriod(period: unknown): period is CalendarPeriod {
  return typeof period === 'string' && Object.hasOwn(PERIODS, period)
}

/** Where the windows lie: all windows of a period in a zone are one object. */
const calendars = new Map<string, Calendar>()

/** @throws InvalidArgumentError naming `timeZone` or `anchorDay` */
export function calendarOf(period: CalendarPeriod, timeZone: unknown = 'UTC', anchorDay?: unknown): Calendar {
  const zone = zoneOf(timeZone)
  const anchor = anchorOf(period, anchorDay)
  const name = `${period} ${anchor} ${zone.name}`
  let calendar = calendars.get(name)
  if (calendar === undefined) {
    const bounds =
      period === 'minute' || period === 'hour' ? clockBounds(period, zone) : dayBounds(period, zone, anchor)
    calendar = new ZonedCalendar(period, anchor, zone, bounds)
    calendars.set(name, calendar)
  }
  return calendar
}

const ANCHORS: { readonly [P in CalendarPeriod]?: readonly [last: number, what: string] } = {
  week: [7, 'a day of the week from 1 (Monday) to 7'],
  month: [31, 'a day of the month from 1 to 31'],
}

function anchorOf(period: CalendarPeriod, anchorDay: unknown): number {
  if (anchorDay === undefined) return 1
  const anchor = ANCHORS[period]
  if (anchor === undefined) {
    const where =
      period === 'year' ? "a year begins on January 1; 'week' and 'month' have one" : "'week' and 'month' have one"
    throw new InvalidArgumentError('anchorDay', `does not fit period '${period}': ${where}`)
  }
  const [last, what] = anchor
  if (typeof anchorDay === 'number' && Number.isInteger(anchorDay) && anchorDay >= 1 && anchorDay <= last)
    return anchorDay
  throw new InvalidArgumentError('anchorDay', `${show(anchorDay)} is not ${what}`)
}

/** The window around an instant, in ms. */
type Bounds = (nowMs: number) => readonly [fromMs: number, toMs: number]

class ZonedCalendar implements Calendar {
  readonly nominalUs: number
  readonly longestUs: number
  readonly identity: readonly [number, number]
  private readonly bounds: Bounds
  private open: Window = { fromUs: 0, toUs: 0 }
  /** The one that was open before: at its end some callers' clocks are ahead of others'. */
  private former: Window = this.open

  constructor(period: CalendarPeriod, anchor: number, zone: Zone, bounds: Bounds) {
    this.bounds = bounds
    this.nominalUs = PERIODS[period].nominalMs * 1000
    this.longestUs = PERIODS[period].longestMs * 1000
    const hash = createHash('sha256').update(zone.name).digest()
    this.identity = [CALENDAR_PERIODS.indexOf(period) * 32 + anchor, Number(hash.readBigUInt64BE() >> 11n)]
  }

  windowAt(nowUs: number): Window {
    const { open, former } = this
    if (nowUs >= open.fromUs && nowUs < open.toUs) return open
    if (nowUs >= former.fromUs && nowUs < former.toUs) return former
    const [fromMs, toMs] = this.bounds(Math.floor(nowUs / 1000))
    this.former = open
    this.open = { fromUs: fromMs * 1000, toUs: toMs * 1000 }
    return this.open
  }
}

/**
 * Minutes and hours last 60 real seconds and minutes, whatever is done to the clocks; they begin with
 * the zone's own. Where an offset changes by a part of one, the window ends there.
 */
function clockBounds(period: 'minute' | 'hour', zone: Zone): Bounds {
  const { longestMs } = PERIODS[period]
  return (nowMs) => {
    const offsetMs = zone.offsetMs(nowMs)
    const whole = (ms: number) => (zone.offsetMs(ms) - offsetMs) % longestMs === 0
    const second = Math.floor(nowMs / 1000) * 1000
    const fromMs = nowMs - modulo(nowMs + offsetMs, longestMs)
    const toMs = fromMs + longestMs
    return [
      whole(fromMs) ? fromMs : zone.changeMs(fromMs, second),
      whole(toMs - 1000) ? toMs : zone.changeMs(second, toMs - 1000),
    ]
  }
}

/** Days and more begin at the first instant at which the zone's clocks have come to their first day. */
function dayBounds(period: 'day' | 'week' | 'month' | 'year', zone: Zone, anchor: number): Bounds {
  const { at, first } = COUNTED[period](anchor)
  return (nowMs) => {
    let index = at(Math.floor((nowMs + zone.offsetMs(nowMs)) / DAY_MS))
    let fromMs = zone.firstAt(first(index) * DAY_MS)
    let toMs = zone.firstAt(first(index + 1) * DAY_MS)
    // Clocks that are set back past midnight do not open the day before again.
    while (toMs <= nowMs) {
      index += 1
      fromMs = toMs
      toMs = zone.firstAt(first(index + 1) * DAY_MS)
    }
    return [fromMs, toMs]
  }
}

/** The periods as numbers in a row: which one a day is in, and the first day of each (days since 1970-01-01). */
interface Counted {
  at(day: number): number
  first(index: number): number
}

/** 1970-01-01 was a Thursday: so many days after a Monday. */
const THURSDAY = 3

const COUNTED: Readonly<Record<'day' | 'week' | 'month' | 'year', (anchor: number) => Counted>> = {
  day: () => ({ at: (day) => day, first: (index) => index }),
  week: (anchor) => {
    const shift = THURSDAY + 1 - anchor
    return { at: (day) => Math.floor((day + shift) / 7), first: (index) => index * 7 - shift }
  },
  month: (anchor) => {
    // A day that a month does not have is its last.
    const first = (index: number) => Math.min(dayOf(0, index) + anchor, dayOf(0, index + 1)) - 1
    const at = (day: number) => {
      const date = new Date(day * DAY_MS)
      const index = date.getUTCFullYear() * 12 + date.getUTCMonth()
      return day < first(index) ? index - 1 : index
    }
    return { at, first }
  },
  year: () => ({
    at: (day) => new Date(day * DAY_MS).getUTCFullYear(),
    first: (index) => dayOf(index, 0),
  }),
}

/** The first day of a month, which may lie beyond the year. */
function dayOf(year: number, month: number): number {
  return Date.UTC(year + Math.floor(month / 12), modulo(month, 12), 1) / DAY_MS
}

function modulo(a: number, b: number): number {
  return ((a % b) + b) % b
}
