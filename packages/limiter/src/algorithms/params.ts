import { type Duration, durationUs } from '../duration.ts'
import { InvalidArgumentError, show } from '../errors.ts'
import type { Limit } from '../limit.ts'
import { MAX_EXACT } from './exact.ts'

/** The longest period, in µs: ten years. It keeps every instant that a state can name below 2^53. */
export const MAX_PERIOD_US = 10 * 366 * 86_400_000_000

/** The longest period of a share, in µs: 71 years. It keeps what is counted in it exact. */
export const MAX_SHARE_US = 2 ** 51

/** The period in which one unit is an instance's share of `limit` a `periodUs`, rounded up. */
export function sharePeriodUs(periodUs: number, limit: number, instances: number): number {
  const exact = (BigInt(periodUs) * BigInt(instances) + BigInt(limit) - 1n) / BigInt(limit)
  return Math.min(Number(exact), MAX_SHARE_US)
}

/** Reads a number of units: an integer from `least` to 2^53 − 1. */
export function unitsOf(value: unknown, argument: string, least: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > MAX_EXACT) {
    throw new InvalidArgumentError(argument, `${show(value)} is not an integer from ${least} to ${MAX_EXACT}`)
  }
  return value
}

/** Reads a period, in µs. */
export function periodOf(period: Duration, argument: string): number {
  const us = durationUs(period, argument)
  if (us > MAX_PERIOD_US) {
    throw new InvalidArgumentError(
      argument,
      `${show(period)} is longer than ten years (3660d)`,
      'HEADGATE_OUT_OF_RANGE',
    )
  }
  return us
}

/** Whose budget it is. `instance`: each process has its own, in its memory. Absent: all share one. */
export type Scope = 'instance'

/** The limit with its `scope`, which every algorithm takes. */
export function scoped<L extends Limit>(limit: L, scope: Scope | undefined): L {
  if (scope === undefined) return limit
  if (scope !== 'instance') {
    throw new InvalidArgumentError(
      'scope',
      `${show(scope)} is not 'instance'; leave it out for a budget that all share`,
    )
  }
  // It is of this process alone with and without a store: nothing is to be shared out.
  return Object.assign(limit, { scope, share: () => limit })
}
