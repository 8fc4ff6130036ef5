import { durationUs, HeadgateError, NAME } from 'headgate'
import { ipMatcher } from 'headgate/http'
import { z } from 'zod'
import { checkLimit, RATE_HINT } from '../rate.ts'
import { integer, type LeafOptions, type Objection, text } from './notes.ts'

/** The longest text of a description. */
const MAX_DESCRIPTION = 2000

export function name(description: string) {
  return text(
    { description, write: 'a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -', pattern: NAME.source },
    checkName,
  )
}

export function checkName(value: string): string | undefined {
  return NAME.test(value) ? undefined : '{} is not a name; write a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -'
}

/** A timer of more than 2^31 - 1 ms fires at once. */
const LONGEST = '24d'

export function duration(
  description: string,
  fallback?: string,
  { mayBeZero = false, most = LONGEST }: { mayBeZero?: boolean; most?: string } = {},
) {
  return text(
    {
      description,
      write: 'a duration such as 250ms, 1s, 1m',
      pattern: '^\\d+(ms|s|m|h|d|w)$',
      ...(fallback === undefined ? {} : { default: fallback }),
    },
    (value) => {
      if (mayBeZero && /^0(ms|s|m|h|d|w)$/.test(value)) return undefined
      if (!/^0*[1-9]\d*(ms|s|m|h|d|w)$/.test(value))
        return '{} is not a duration; write a whole number and ms, s, m, h, d or w, such as 250ms'
      // What has the form and still is none has too many digits.
      return (durationMs(value) ?? Number.POSITIVE_INFINITY) <= (durationMs(most) as number)
        ? undefined
        : { code: 'HEADGATE_RULES_RANGE', message: `{} is too long; write at most ${most}` }
    },
  )
}

/** A duration's text in ms; undefined where it is none. */
export function durationMs(value: string): number | undefined {
  try {
    return durationUs(value, 'duration') / 1000
  } catch (error) {
    if (HeadgateError.is(error)) return undefined
    throw error
  }
}

/** A rate, `unlimited`, or a bare count, which only concurrency takes. */
export function rateOrCount(description: string) {
  const written = text(
    { description, write: `${RATE_HINT}, or unlimited`, pattern: RATE_PATTERN, examples: ['800/s', '1000/day'] },
    checkLimit,
  )
  return z
    .union([written, integer('How many are held at once (concurrency).', 0, Number.MAX_SAFE_INTEGER)])
    .meta({ description })
}

const RATE_PATTERN =
  '^(unlimited|(0|[1-9][0-9]*)/(([1-9][0-9]*)?(ms|s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)|months?|years?))$'

/** An IANA name; whether this Node.js knows it is for the limit itself to say. */
export function timeZone(description: string) {
  return text(
    { description, write: 'an IANA name such as Asia/Shanghai', examples: ['UTC', 'Asia/Shanghai'], default: 'UTC' },
    (value) => (value === '' ? 'is empty; write an IANA name such as Asia/Shanghai' : undefined),
  )
}

export function network(description: string) {
  return text({ description, write: 'a network such as 10.0.0.0/8 or 2001:db8::/32' }, checkNetwork)
}

function checkNetwork(value: string): string | undefined {
  try {
    ipMatcher([value], 'network')
    return undefined
  } catch (error) {
    if (!HeadgateError.is(error)) throw error
    return '{} is not a network; write one such as 10.0.0.0/8, 2001:db8::/32 or a single address'
  }
}

const FIELD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export function fieldName(description: string) {
  return text(
    { description, write: "a field's name such as x-user-id", pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
    checkField,
  )
}

export function checkField(value: string): string | undefined {
  return FIELD.test(value)
    ? undefined
    : "{} is not a field's name; write letters, digits and hyphens, such as x-user-id"
}

export function anyText(options: LeafOptions) {
  return text(options, (value) => (value === '' ? `{} is empty; write ${options.write}` : undefined))
}

export function prose(description: string) {
  return text({ description, write: 'a sentence that says why' }, (value): string | Objection | undefined => {
    if (value.trim() === '') return 'is empty; write a sentence that says why'
    if (value.length <= MAX_DESCRIPTION) return undefined
    return { code: 'HEADGATE_RULES_RANGE', message: `is longer than ${MAX_DESCRIPTION} characters; shorten it` }
  })
}

/** Matches nothing else than what `new URL` takes as an origin: scheme, host, port. */
export function checkOrigin(value: string): string | Objection | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || !/^https?:\/\//i.test(value)) return '{} is not an origin; write one such as http://127.0.0.1:3000'
  if (url.username !== '' || url.password !== '')
    return 'an origin holds no credentials; write one such as http://127.0.0.1:3000'
  const bare = url.pathname === '/' && url.search === '' && url.hash === ''
  if (!bare || value.endsWith('?') || value.endsWith('#')) {
    const message = '{} has more than an origin: paths and queries come from the request'
    return { code: 'HEADGATE_RULES_VALUE', message, fix: url.origin }
  }
  return undefined
}
