import {
  concurrency,
  fixedWindow,
  HeadgateError,
  type InvalidArgumentError,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from 'headgate'
import { countOf, isRate, parseRate, RATE_HINT, type Rate, UNLIMITED } from '../rate.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import type { LimitValues } from './context.ts'

type Algorithm = NonNullable<LimitValues['algorithm']>

/** What a limit says for all its numbers, those of its overrides too. */
type Settings = Omit<LimitValues, 'name' | 'by' | 'limit' | 'burst' | 'overrides'>

/** Numbers of a limit, of its own or of an override. */
export interface Numbers {
  readonly limit: string | number
  readonly burst: number | undefined
}

interface Made extends Rate {
  readonly burst: number | undefined
}

/** How a limit is made; a count comes as the units of a rate. */
const MAKE: { readonly [A in Algorithm]: (made: Made, settings: Settings) => Limit } = {
  'token-bucket': (made, settings) =>
    tokenBucket(given({ ...numbersOf(made), burst: made.burst, initial: settings.initial, scope: settings.scope })),
  'leaky-bucket': (made, { queue, scope }) => leakyBucket(given({ ...numbersOf(made), queue, scope })),
  'fixed-window': (made, { align, timeZone, anchorDay, scope }) =>
    fixedWindow(given({ ...numbersOf(made, align), align, timeZone, anchorDay, scope })),
  'sliding-window': (made, { slices, strict, scope }) =>
    slidingWindow(given({ ...numbersOf(made), slices, strict, scope })),
  'sliding-log': (made, { scope }) => slidingLog(given({ ...numbersOf(made), scope })),
  concurrency: ({ units }, { ttl, scope }) => concurrency(given({ limit: units, ttl, scope })),
}

/** Which algorithm a key belongs to. */
const KEYS = {
  burst: 'token-bucket',
  initial: 'token-bucket',
  queue: 'leaky-bucket',
  align: 'fixed-window',
  timeZone: 'fixed-window',
  anchorDay: 'fixed-window',
  slices: 'sliding-window',
  strict: 'sliding-window',
  ttl: 'concurrency',
} as const satisfies { readonly [K in keyof LimitValues]?: Algorithm }

const KEY_NAMES = Object.keys(KEYS) as (keyof typeof KEYS)[]

/** The algorithm that was written; undefined: it is not known, and that was said. */
export function algorithmOf(values: LimitValues, path: Path, report: Report): Algorithm | undefined {
  return report.failedWithin([...path, 'algorithm']) ? undefined : (values.algorithm ?? 'token-bucket')
}

/** Reports keys that another algorithm has. */
export function checkKeys(
  values: Partial<Record<keyof typeof KEYS, unknown>>,
  algorithm: Algorithm,
  path: Path,
  report: Report,
): void {
  for (const key of KEY_NAMES) {
    if (values[key] === undefined || KEYS[key] === algorithm) continue
    const message = `belongs to algorithm: ${KEYS[key]}, and this limit is a ${algorithm}; leave it out, or write that algorithm`
    report.add([...path, key], 'HEADGATE_RULES_CONFLICT', message, { at: 'key' })
  }
  if (algorithm !== 'fixed-window' || values.align === 'calendar' || report.failedWithin([...path, 'align'])) return
  for (const key of ['timeZone', 'anchorDay'] as const) {
    if (values[key] === undefined) continue
    report.add([...path, key], 'HEADGATE_RULES_CONFLICT', 'needs align: calendar; add that, or leave it out', {
      at: 'key',
    })
  }
}

/**
 * The numbers as a limit; undefined for `unlimited`, and where they are wrong.
 * @param at where the numbers stand; @param path where the limit does
 */
export function limitOf(
  numbers: Numbers,
  algorithm: Algorithm,
  settings: Settings,
  at: Path,
  path: Path,
  report: Report,
): Limit | undefined {
  const { burst } = numbers
  const conflict = (message: string) => report.add([...at, 'burst'], 'HEADGATE_RULES_CONFLICT', message, { at: 'key' })
  if (numbers.limit === UNLIMITED) {
    if (burst !== undefined) conflict('contradicts unlimited; keep one of the two')
    checkSettings(algorithm, settings, path, report)
    return undefined
  }
  const rate = rateOf(numbers.limit, algorithm, settings, limitPath(at, report), report)
  if (rate?.units === 0 && burst !== undefined) {
    conflict('contradicts a limit of 0, which refuses all; leave it out')
    return undefined
  }
  if (rate === undefined) {
    checkSettings(algorithm, settings, path, report)
    return undefined
  }
  if (isSaid(path, report)) return undefined
  const made = { ...rate, burst: algorithm === 'token-bucket' ? burst : undefined }
  return make(made, algorithm, settings, (error) => refuse(error, rate, at, path, report))
}

/** Whether the limit's own keys are wrong: that is said once, whoever else it is wrong for. */
function isSaid(path: Path, report: Report): boolean {
  return KEY_NAMES.some((key) => report.failedWithin([...path, key]))
}

/** Reports the keys that are wrong with any numbers, where there are none that the limit could be made with. */
export function checkSettings(algorithm: Algorithm, settings: Settings, path: Path, report: Report): void {
  if (isSaid(path, report)) return
  make(STAND_IN, algorithm, settings, (error) => {
    if (KEY_NAMES.some((key) => key === error.argument)) refuse(error, STAND_IN, path, path, report)
  })
}

/** What fits any numbers fits these. */
const STAND_IN: Made = { units: 1, periodMs: 1000, text: '', fixed: true, calendar: 'month', burst: undefined }

/** The limit; undefined where something is wrong: then all keys are told that are. */
function make(
  made: Made,
  algorithm: Algorithm,
  settings: Settings,
  tell: (error: InvalidArgumentError) => void,
): Limit | undefined {
  let wrong = false
  for (let rest = settings; ; ) {
    try {
      const limit = MAKE[algorithm](made, rest)
      return wrong ? undefined : limit
    } catch (error) {
      if (!HeadgateError.is(error) || !('argument' in error)) throw error
      tell(error as InvalidArgumentError)
      wrong = true
      // Without a key that is wrong by itself, the next one shows; numbers are wrong together.
      const key = KEY_NAMES.find((name) => name === (error as InvalidArgumentError).argument)
      if (key === undefined || error.code === 'HEADGATE_OUT_OF_RANGE') return undefined
      rest = { ...rest, [key]: undefined }
    }
  }
}

/** What a limit is, in words: `800/s burst 120`, `1000/day, calendar Asia/Shanghai`, `10 held at once, ttl 1m`. */
export function wordsOf({ limit, burst }: Numbers, algorithm: Algorithm, settings: Settings): string {
  if (limit === UNLIMITED) return UNLIMITED
  const {
    initial,
    queue,
    align,
    timeZone = 'UTC',
    anchorDay,
    slices = 10,
    strict = false,
    ttl = '1m',
    scope,
  } = settings
  const own: { readonly [A in Algorithm]: readonly unknown[] } = {
    'token-bucket': [
      `${limit}${burst === undefined ? '' : ` burst ${burst}`}`,
      initial === 'empty' && 'empty at first',
    ],
    'leaky-bucket': [`${limit} leaky-bucket`, queue !== undefined && `queue ${queue}`],
    'fixed-window':
      align === 'calendar'
        ? [limit, `calendar ${timeZone}`, anchorDay !== undefined && `from day ${anchorDay}`]
        : [`${limit} fixed-window`, align === 'first-hit' && align],
    'sliding-window': [`${limit} sliding-window`, `${slices} slices`, strict && 'strict'],
    'sliding-log': [`${limit} sliding-log`],
    concurrency: [`${limit} held at once`, `ttl ${ttl}`],
  }
  return [...own[algorithm], scope === 'instance' && 'each instance its own']
    .filter((part) => part !== false)
    .join(', ')
}

/** What is written as units and a period; a count has none. */
function rateOf(
  text: string | number,
  algorithm: Algorithm,
  { align }: Settings,
  path: Path,
  report: Report,
): Rate | undefined {
  const refuseAs = (message: string) => {
    report.add(path, 'HEADGATE_RULES_VALUE', message)
    return undefined
  }
  const count = countOf(text)
  if (algorithm === 'concurrency') {
    if (count === undefined) return refuseAs('{} is a rate; concurrency takes a bare count, such as 10')
    return { units: count, periodMs: 0, text: `${text}`, fixed: true }
  }
  if (count !== undefined)
    return refuseAs(`{} is not a rate; write ${RATE_HINT}; a bare count is for algorithm: concurrency`)
  const rate = parseRate(`${text}`)
  if (!isRate(rate)) return undefined
  if (align === 'calendar' && algorithm === 'fixed-window') {
    if (rate.calendar !== undefined) return rate
    return refuseAs('{} is no period of a calendar; write N/minute, N/hour, N/day, N/week, N/month or N/year')
  }
  if (rate.fixed) return rate
  return refuseAs('{} has no fixed length; add algorithm: fixed-window and align: calendar, or write a period in days')
}

/** The units, and the period as the library takes it. */
function numbersOf({ units, periodMs, calendar }: Rate, align?: Settings['align']) {
  return { limit: units, period: align === 'calendar' && calendar !== undefined ? calendar : periodMs }
}

/** Options without those that are undefined: to the library, an option that is there has a value. */
function given<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}

function refuse(error: InvalidArgumentError, rate: Rate, at: Path, path: Path, report: Report): void {
  const place = placeOf(error.argument, at, path, report)
  if (error.argument === 'timeZone') {
    const message = '{} is no time zone that is known here; write an IANA name such as UTC or Asia/Shanghai'
    report.add(place, 'HEADGATE_RULES_VALUE', message, { options: Intl.supportedValuesOf('timeZone') })
    return
  }
  // The library was given the period in ms; the file's author wrote it otherwise.
  const problem = error.message
    .slice(error.argument.length + 2)
    .replace(`limit ${rate.units} in ${rate.periodMs} ms`, `limit ${rate.text}`)
    .replace(`${rate.periodMs} is longer than`, `the period of ${rate.text} is longer than`)
  const hidden = [place, [...at, 'limit'], [...at, 'burst'], at].some((each) => report.source.expanded(each))
  const message = hidden ? 'the numbers leave the range in which arithmetic is exact; write smaller ones' : problem
  const range = error.code === 'HEADGATE_OUT_OF_RANGE' || hidden
  report.add(place, range ? 'HEADGATE_RULES_RANGE' : 'HEADGATE_RULES_VALUE', message)
}

/** Where an argument of the library stands in the file; what does not stand there follows from the rate. */
function placeOf(argument: string, at: Path, path: Path, report: Report): Path {
  const places = [
    [...at, argument],
    [...path, argument],
  ]
  return (
    places.find((place) => argument !== 'limit' && report.source.written(place) !== undefined) ?? limitPath(at, report)
  )
}

/** An override may be a rate alone. */
function limitPath(path: Path, report: Report): Path {
  const inner = [...path, 'limit']
  return report.source.written(inner) === undefined ? path : inner
}
