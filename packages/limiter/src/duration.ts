import { InvalidArgumentError, show } from './errors.ts'

/** The longest time that a timer of Node's can wait, in ms: 24.8 days. Above, it fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** A span of time: `'250ms' '1s' '1m' '1h' '1d' '1w'`, or a number of milliseconds. */
export type Duration = number | string

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

const TEXT = /^(\d{1,15})(ms|s|m|h|d|w)$/

/**
 * Reads a duration as integer microseconds (≥ 1).
 * @throws InvalidArgumentError naming `argument` for anything else, fractions of a microsecond too
 */
export function durationUs(duration: Duration, argument: string): number {
  const us = typeof duration === 'number' ? numberUs(duration) : textUs(duration)
  if (!Number.isSafeInteger(us) || us < 1) {
    throw new InvalidArgumentError(
      argument,
      `${show(duration)} is not a duration; write '250ms', '1s', '1m', '1h', '1d', or a positive number of milliseconds`,
    )
  }
  return us
}

/** NaN unless it is the double nearest to a whole number of µs; 1.001 × 1000 alone is not quite 1001. */
function numberUs(ms: number): number {
  const us = Math.round(ms * 1000)
  return us / 1000 === ms ? us : Number.NaN
}

function textUs(text: unknown): number {
  const parts = typeof text === 'string' ? TEXT.exec(text) : null
  return parts ? Number(parts[1]) * (UNIT_MS[parts[2] as string] as number) * 1000 : Number.NaN
}
