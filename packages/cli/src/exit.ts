import { type ErrorCode, HeadgateError } from 'headgate'

/** What the process ends with. */
export const EXIT = {
  fine: 0,
  /** Something was found, or something was or would be refused. */
  refused: 1,
  usage: 2,
  /** A server does not answer. */
  unreachable: 3,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

const EXIT_OF: Partial<Record<ErrorCode, ExitCode>> = {
  HEADGATE_USAGE: EXIT.usage,
  HEADGATE_RULES_FILE: EXIT.usage,
  HEADGATE_STORE_UNAVAILABLE: EXIT.unreachable,
}

/** What the process ends with after an error; all that is not named above is a finding. */
export function exitCodeOf(error: unknown): ExitCode {
  return (HeadgateError.is(error) && EXIT_OF[error.code]) || EXIT.refused
}

/** A command line that cannot be carried out; the message says what to write instead. */
export function usageError(message: string): HeadgateError {
  return new HeadgateError('HEADGATE_USAGE', message)
}
