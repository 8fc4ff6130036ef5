import type { Objection } from './schema/notes.ts'

/** So many units a period. */
export interface Rate {
  readonly units: number
  /** Of a month and a year, which have no fixed length: 30 and 365 days. */
  readonly periodMs: number
  /** As it is written, such as `800/s`. */
  readonly text: string
  /** The period's name in a calendar, where it is one of its periods. */
  readonly calendar?: 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year'
  /** Whether the period has a length outside a calendar. */
  readonly fixed: boolean
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 30 * 86_400_000,
  year: 365 * 86_400_000,
}
const CALENDAR: Readonly<Record<string, Rate['calendar']>> = {
  m: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
  minute: 'minute',
  hour: 'hour',
  day: 'day',
  week: 'week',
  month: 'month',
  year: 'year',
}

const RATE = /^(0|[1-9]\d*)\/((?:[1-9]\d*)?)([a-zA-Z]+)$/

export const RATE_HINT = 'a whole number, a slash and a period, such as 800/s, 10/5m or 1000/day'
const TOO_LARGE = `{} is too large; write at most ${Number.MAX_SAFE_INTEGER} units, a period of at most 3660d`
export const UNLIMITED = 'unlimited'

/** Reads a rate `N/[n]unit`; anything else gives an objection, in which `{}` is the text as written. */
export function parseRate(text: string): Rate | Objection {
  const parts = RATE.exec(text)
  if (!parts) return form(`{} is not a rate; write ${RATE_HINT}; 0/s refuses all, unlimited does not limit`)
  const [, units = '', count = '', unit = ''] = parts
  const single = unit.length > 3 && unit.endsWith('s') ? unit.slice(0, -1) : unit
  const unitMs = Object.hasOwn(UNIT_MS, single) ? UNIT_MS[single] : undefined
  if (unitMs === undefined) {
    return form(
      `{} has no period that is known; write ms, s, m, h, d, w, or second, minute, hour, day, week, month, year`,
    )
  }
  const fixed = single !== 'month' && single !== 'year'
  if (!fixed && count !== '') return form(`{} has no fixed length; write one ${single}, such as 1000/${single}`)
  const calendar = count === '' && Object.hasOwn(CALENDAR, single) ? CALENDAR[single] : undefined
  const periodMs = (count === '' ? 1 : Number(count)) * unitMs
  const rate: Rate = { units: Number(units), periodMs, text, fixed, ...(calendar && { calendar }) }
  if (Number.isSafeInteger(rate.units) && Number.isSafeInteger(rate.periodMs * 1000)) return rate
  return { code: 'HEADGATE_RULES_RANGE', message: TOO_LARGE }
}

function form(message: string): Objection {
  return { code: 'HEADGATE_RULES_VALUE', message }
}

export function isRate(value: Rate | Objection): value is Rate {
  return 'units' in value
}

/** A rate's text checked, `unlimited` too. */
export function checkRate(text: string): Objection | undefined {
  if (text === UNLIMITED) return undefined
  const rate = parseRate(text)
  return isRate(rate) ? undefined : rate
}

/** A bare count, such as `10`, also as a text; undefined: it is none. */
export function countOf(value: string | number): number | undefined {
  if (typeof value === 'number') return value
  return /^(0|[1-9]\d{0,15})$/.test(value) ? Number(value) : undefined
}

/** What a limit may be, as a text: a rate, `unlimited`, or a count. Which of them it must be depends on its algorithm. */
export function checkLimit(text: string): Objection | undefined {
  return countOf(text) === undefined ? checkRate(text) : undefined
}
