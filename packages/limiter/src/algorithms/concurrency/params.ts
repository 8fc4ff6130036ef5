import type { Duration } from '../../duration.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { refuseUnknown } from '../../options.ts'
import { periodOf, type Scope, unitsOf } from '../params.ts'

export interface ConcurrencyOptions {
  /** Slots held at once, integer from 0 (refuses all) to 10,000. */
  limit: number
  /** How long a slot lasts whose holder neither releases nor renews it; `'30s'` … or a number of ms; default a minute. */
  ttl?: Duration
  /** `instance`: each process has slots of its own, in its memory. */
  scope?: Scope
}

export interface ConcurrencyParams {
  readonly limit: number
  readonly ttlUs: number
}

/** The most slots of one key: they are read and written together. */
export const MAX_SLOTS = 10_000

/** Checks the options. @throws InvalidArgumentError */
export function concurrencyParams(options: ConcurrencyOptions): ConcurrencyParams {
  refuseUnknown(options, ['limit', 'ttl', 'scope'], 'concurrency')
  const limit = unitsOf(options.limit, 'limit', 0)
  if (limit > MAX_SLOTS) {
    throw new InvalidArgumentError('limit', `${limit} is above ${MAX_SLOTS} slots`, 'HEADGATE_OUT_OF_RANGE')
  }
  return { limit, ttlUs: periodOf(options.ttl ?? '1m', 'ttl') }
}
