import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CalendarPeriod, calendarOf } from './calendar.ts'

const HOUR = 3_600_000
const ZONES = Intl.supportedValuesOf('timeZone')
/** Where clocks do what nobody expects. */
const ODD_ZONES = [
  'UTC',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'America/Sao_Paulo',
  'Africa/Cairo',
  'America/Havana',
  'America/St_Johns',
  'Pacific/Apia',
  'Pacific/Kiritimati',
  'Antarctica/Troll',
  'Africa/Casablanca',
  'America/Caracas',
  'Asia/Pyongyang',
  'Atlantic/Azores',
]

/** A window as UTC text. */
function windowOf(period: CalendarPeriod, timeZone: string, instant: string, anchorDay?: number): [string, string] {
  const { fromUs, toUs } = calendarOf(period, timeZone, anchorDay).windowAt(Date.parse(instant) * 1000)
  return [text(fromUs), text(toUs)]
}

const text = (us: number) => new Date(us / 1000).toISOString().replace(':00.000Z', 'Z')

/** What a clock in the zone shows, such as `2011-12-29 23:59:59`, which sorts by time. */
const shown = new Map<string, Intl.DateTimeFormat>()
function clock(timeZone: string, ms: number): string {
  let format = shown.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
    shown.set(timeZone, format)
  }
  return format.format(ms)
}

/** The first day of the period that a date (`2011-12-29`) is in, and of the one after it: by counting days. */
function daysOf(period: CalendarPeriod, date: string, anchor: number): [string, string] {
  const move = (from: string, days: number) =>
    new Date(Date.parse(`${from}T00:00Z`) + days * 24 * HOUR).toISOString().slice(0, 10)
  const begins = (day: string): boolean => {
    const [, month, number] = day.split('-').map(Number)
    if (period === 'day') return true
    if (period === 'week') return (new Date(`${day}T00:00Z`).getUTCDay() || 7) === anchor
    if (period === 'year') return month === 1 && number === 1
    const isLast = move(day, 1).endsWith('-01')
    return number === anchor || (isLast && (number as number) < anchor)
  }
  let first = date
  while (!begins(first)) first = move(first, -1)
  let next = move(date, 1)
  while (!begins(next)) next = move(next, 1)
  return [first, next]
}

/** Goes through the hours around a day's midnight and looks at the clock, minute by minute where the day comes. */
function firstShowing(timeZone: string, day: string): number {
  let ms = Date.parse(`${day}T00:00Z`) - 20 * HOUR
  while (clock(timeZone, ms + HOUR / 4) < day) ms += HOUR / 4
  while (clock(timeZone, ms) < day) ms += 60_000
  return ms
}

function slowWindow(period: CalendarPeriod, timeZone: string, ms: number, anchor: number): [number, number] {
  if (period === 'minute' || period === 'hour') {
    // From minute to minute while the clock runs on without a break, or was moved by whole hours.
    const parts = period === 'hour' ? 60 : 1
    const number = (at: number) => Math.floor(Date.parse(`${clock(timeZone, at).replace(' ', 'T')}Z`) / 60_000)
    const begins = (at: number) => number(at) % parts === 0 || (number(at) - number(at - 60_000) - 1) % parts !== 0
    let from = Math.floor(ms / 60_000) * 60_000
    let to = from + 60_000
    while (!begins(from)) from -= 60_000
    while (!begins(to)) to += 60_000
    return [from, to]
  }
  let [day, next] = daysOf(period, clock(timeZone, ms).slice(0, 10), anchor)
  while (firstShowing(timeZone, next) <= ms) [day, next] = daysOf(period, next, anchor)
  return [firstShowing(timeZone, day), firstShowing(timeZone, next)]
}

const periods = fc.constantFrom<CalendarPeriod>('minute', 'hour', 'day', 'week', 'month', 'year')
const zones = fc.oneof(fc.constantFrom(...ZONES), fc.constantFrom(...ODD_ZONES))
const instants = fc.integer({ min: Date.UTC(1990, 0, 1), max: Date.UTC(2100, 0, 1) })
/** Near what a zone does to its clocks. */
const edges = fc
  .tuple(
    fc.constantFrom(
      ['Pacific/Apia', '2011-12-30T10:00Z'],
      ['America/Sao_Paulo', '2018-11-04T03:00Z'],
      ['America/Sao_Paulo', '2018-02-18T02:00Z'],
      ['Africa/Cairo', '2023-04-27T22:00Z'],
      ['Africa/Cairo', '2023-10-26T21:00Z'],
      ['America/Havana', '2024-11-03T05:00Z'],
      ['America/St_Johns', '2006-10-29T02:31Z'],
      ['Australia/Lord_Howe', '2024-04-06T15:00Z'],
      ['Australia/Lord_Howe', '2024-10-05T15:30Z'],
      ['Pacific/Kiritimati', '1994-12-31T10:00Z'],
      ['Europe/Berlin', '2024-03-31T01:00Z'],
      ['Europe/Berlin', '2024-10-27T01:00Z'],
      ['America/Caracas', '2016-05-01T07:00Z'],
      ['Asia/Pyongyang', '2018-05-04T15:00Z'],
      ['Antarctica/Troll', '2024-10-27T01:00Z'],
    ),
    fc.integer({ min: -30 * HOUR, max: 30 * HOUR }),
  )
  .map(([[zone, instant], off]) => [zone, Date.parse(instant as string) + off] as [string, number])
const places = fc.oneof({ weight: 2, arbitrary: fc.tuple(zones, instants) }, edges)

const anchorOf = (period: CalendarPeriod, any: number) =>
  period === 'month' ? (any % 31) + 1 : period === 'week' ? (any % 7) + 1 : undefined

describe('calendar windows, in every zone and at every instant from 1990 to 2100', () => {
  it('equal what somebody finds who looks at the clock', () => {
    fc.assert(
      fc.property(periods, places, fc.nat(), (period, [zone, ms], any) => {
        const anchor = anchorOf(period, any)
        const { fromUs, toUs } = calendarOf(period, zone, anchor).windowAt(ms * 1000 + (any % 1000))
        expect([fromUs / 1000, toUs / 1000]).toEqual(slowWindow(period, zone, ms, anchor ?? 1))
      }),
      { numRuns: 600 },
    )
  })

  it('hold the instant, and follow each other without gap or overlap', () => {
    fc.assert(
      fc.property(periods, places, fc.nat(), (period, [zone, ms], any) => {
        const calendar = calendarOf(period, zone, anchorOf(period, any))
        const nowUs = ms * 1000 + (any % 1000)
        const window = calendar.windowAt(nowUs)
        expect(window.fromUs <= nowUs && nowUs < window.toUs).toBe(true)
        expect(window.toUs - window.fromUs).toBeLessThanOrEqual(calendar.longestUs)
        // Those beside it, and itself again from both of its ends, without what was kept of it.
        const next = calendar.windowAt(window.toUs)
        const later = calendar.windowAt(next.toUs)
        const former = calendar.windowAt(window.fromUs - 1)
        expect([next.fromUs, later.fromUs, former.toUs]).toEqual([window.toUs, next.toUs, window.fromUs])
        expect([calendar.windowAt(window.fromUs), calendar.windowAt(window.toUs - 1)]).toEqual([window, window])
      }),
      { numRuns: 600 },
    )
  })

  it('are one object while they are open, whoever asks', () => {
    const day = calendarOf('day', 'Asia/Shanghai')
    expect(calendarOf('day', 'asia/shanghai')).toBe(day)
    const nowUs = Date.parse('2026-03-01T12:00Z') * 1000
    expect(day.windowAt(nowUs)).toBe(day.windowAt(nowUs + 1))
    const before = day.windowAt(nowUs - 24 * HOUR * 1000)
    expect([day.windowAt(nowUs), day.windowAt(nowUs - 24 * HOUR * 1000)]).toEqual([day.windowAt(nowUs), before])
    expect(day.windowAt(before.fromUs)).toBe(before)
  })
})

describe('a day', () => {
  it.each([
    ['is one of the zone', 'Asia/Shanghai', '2026-11-30T16:30Z', '2026-11-30T16:00Z', '2026-12-01T16:00Z'],
    ['of a quarter of an hour', 'Asia/Kathmandu', '2026-01-01T12:00Z', '2025-12-31T18:15Z', '2026-01-01T18:15Z'],
    ['of 23 hours', 'Europe/Berlin', '2024-03-31T12:00Z', '2024-03-30T23:00Z', '2024-03-31T22:00Z'],
    ['of 25 hours', 'Europe/Berlin', '2024-10-27T12:00Z', '2024-10-26T22:00Z', '2024-10-27T23:00Z'],
    ['of 23.5 hours', 'Australia/Lord_Howe', '2024-10-05T20:00Z', '2024-10-05T13:30Z', '2024-10-06T13:00Z'],
    [
      'without a midnight begins at 1:00',
      'America/Sao_Paulo',
      '2018-11-04T12:00Z',
      '2018-11-04T03:00Z',
      '2018-11-05T02:00Z',
    ],
    [
      'without a midnight begins at 1:00',
      'Africa/Cairo',
      '2023-04-28T12:00Z',
      '2023-04-27T22:00Z',
      '2023-04-28T21:00Z',
    ],
    [
      'with two midnights begins at the first',
      'America/Havana',
      '2024-11-03T05:30Z',
      '2024-11-03T04:00Z',
      '2024-11-04T05:00Z',
    ],
    [
      'does not come again when clocks are set back past its midnight',
      'America/St_Johns',
      '2006-10-29T02:45Z',
      '2006-10-29T02:30Z',
      '2006-10-30T03:30Z',
    ],
    ['before one that a zone skipped', 'Pacific/Apia', '2011-12-30T09:59Z', '2011-12-29T10:00Z', '2011-12-30T10:00Z'],
    ['after one that a zone skipped', 'Pacific/Apia', '2011-12-30T10:00Z', '2011-12-30T10:00Z', '2011-12-31T10:00Z'],
  ])('%s: %s', (_what, zone, instant, from, to) => {
    expect(windowOf('day', zone, instant)).toEqual([from, to])
  })
})

describe('an hour and a minute', () => {
  it.each([
    [
      'begin with the clock of the zone',
      'hour',
      'Asia/Kathmandu',
      '2026-01-01T12:00Z',
      '2026-01-01T11:15Z',
      '2026-01-01T12:15Z',
    ],
    [
      'are real ones where clocks show an hour twice',
      'hour',
      'Europe/Berlin',
      '2024-10-27T01:30Z',
      '2024-10-27T01:00Z',
      '2024-10-27T02:00Z',
    ],
    [
      'end where clocks are moved by half of one',
      'hour',
      'Australia/Lord_Howe',
      '2024-04-06T15:10Z',
      '2024-04-06T15:00Z',
      '2024-04-06T15:30Z',
    ],
    [
      'end where clocks are moved by half of one',
      'hour',
      'Australia/Lord_Howe',
      '2024-10-05T15:40Z',
      '2024-10-05T15:30Z',
      '2024-10-05T16:00Z',
    ],
    [
      'are the same everywhere',
      'minute',
      'Asia/Kathmandu',
      '2026-01-01T12:00:59Z',
      '2026-01-01T12:00Z',
      '2026-01-01T12:01Z',
    ],
  ] as const)('%s: %s %s %s', (_what, period, zone, instant, from, to) => {
    expect(windowOf(period, zone, instant)).toEqual([from, to])
  })
})

describe('a week, a month and a year', () => {
  it.each([
    ['a week begins on Monday', 'week', undefined, '2026-11-30T00:00Z', '2026-11-30T00:00Z', '2026-12-07T00:00Z'],
    ['or on the day that is wanted', 'week', 7, '2026-11-30T00:00Z', '2026-11-29T00:00Z', '2026-12-06T00:00Z'],
    [
      'a month begins with its first',
      'month',
      undefined,
      '2024-02-29T23:00Z',
      '2024-02-01T00:00Z',
      '2024-03-01T00:00Z',
    ],
    ['or on the day that is wanted', 'month', 15, '2026-01-14T00:00Z', '2025-12-15T00:00Z', '2026-01-15T00:00Z'],
    [
      'or with its last where it lacks that',
      'month',
      31,
      '2026-03-01T00:00Z',
      '2026-02-28T00:00Z',
      '2026-03-31T00:00Z',
    ],
    ['also in a leap year', 'month', 30, '2024-02-29T00:00Z', '2024-02-29T00:00Z', '2024-03-30T00:00Z'],
    ['a year begins on January 1', 'year', undefined, '2024-12-31T23:59Z', '2024-01-01T00:00Z', '2025-01-01T00:00Z'],
  ] as const)('%s: %s %s', (_what, period, anchor, instant, from, to) => {
    expect(windowOf(period, 'UTC', instant, anchor)).toEqual([from, to])
  })
})

it('a window that is open is found without looking at a clock', () => {
  const day = calendarOf('day', 'Europe/Berlin')
  const nowUs = Date.parse('2026-03-01T12:00Z') * 1000
  day.windowAt(nowUs)
  const format = Intl.DateTimeFormat.prototype.formatToParts
  Intl.DateTimeFormat.prototype.formatToParts = () => {
    throw new Error('asked')
  }
  try {
    for (let i = 0; i < 1000; i++) day.windowAt(nowUs + i)
  } finally {
    Intl.DateTimeFormat.prototype.formatToParts = format
  }
})
