import type { Decision } from './decision.ts'
import { InvalidArgumentError, show } from './errors.ts'
import type { Check, Follower, Operation, OperationName, Part } from './store.ts'

export interface CheckOptions {
  /** Aborting rejects with the signal's reason; what was already written stays charged. */
  signal?: AbortSignal | undefined
}

/** What is known to be valid: enforced parts, and what is judged beside them. */
export interface Judged {
  readonly parts: readonly Part[]
  readonly followers?: readonly Follower[]
}

/** The engine, as operations need it. */
export interface Ways {
  run(check: Check, options?: CheckOptions): Promise<Decision>
  operate(check: Check, where?: 'store' | 'local'): Promise<number[]>
}

/** Ten years: what for ever means. */
export const LONGEST_MS = 3660 * 86_400_000

export function op(name: OperationName, ...args: number[]): Operation {
  return { name, args }
}

/** @throws InvalidArgumentError where `ms` is no number from `least` to ten years */
export function spanOf(ms: unknown, argument: string, least: number): number {
  if (typeof ms === 'number' && ms >= least && ms <= LONGEST_MS) return ms
  throw new InvalidArgumentError(
    argument,
    `${show(ms)} is not a number of ms from ${least} to ${LONGEST_MS} (ten years)`,
  )
}
