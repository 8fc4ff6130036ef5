import type { Objection } from './schema/notes.ts'

/** So many units a period. */
export interface Rate {
  readonly units: number
  readonly periodMs: number
  /** As it is written, such as `800/s`. */
  readonly text: string
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
}
const CALENDAR_UNITS = ['month', 'year']

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
  if (CALENDAR_UNITS.includes(single)) {
    const message = `{} has no fixed length and needs align: calendar, which is not supported yet; write a period in days`
    return { code: 'HEADGATE_RULES_UNSUPPORTED', message }
  }
  const unitMs = Object.hasOwn(UNIT_MS, single) ? UNIT_MS[single] : undefined
  if (unitMs === undefined) {
    return form(`{} has no period that is known; write ms, s, m, h, d, w, or second, minute, hour, day, week`)
  }
  const rate = { units: Number(units), periodMs: (count === '' ? 1 : Number(count)) * unitMs, text }
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
