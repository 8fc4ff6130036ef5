import type { Duration } from '../../duration.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import { periodOf, type Scope, unitsOf } from '../params.ts'

export interface SlidingLogOptions {
  /** Units in any window of one period, integer from 0 (refuses all) to 10,000. */
  limit: number
  /** `'1s'`, `'1m'` … or a number of ms; at most ten years. */
  period: Duration
  /** `instance`: each process has a budget of its own, in its memory. */
  scope?: Scope
}

export interface SlidingLogParams {
  readonly limit: number
  readonly periodUs: number
}

/** The most units of one key: each can be an entry of its own, and all are read and written together. */
export const MAX_LOG = 10_000

/** Checks the options. @throws InvalidArgumentError */
export function slidingLogParams(options: SlidingLogOptions): SlidingLogParams {
  refuseUnknown(options, ['limit', 'period', 'scope'], 'slidingLog')
  const limit = unitsOf(options.limit, 'limit', 0)
  if (limit > MAX_LOG) {
    throw new InvalidArgumentError(
      'limit',
      `${limit} is above the ${MAX_LOG} units of a log; take a sliding window for more`,
      'HEADGATE_OUT_OF_RANGE',
    )
  }
  return { limit, periodUs: periodOf(options.period, 'period') }
}
