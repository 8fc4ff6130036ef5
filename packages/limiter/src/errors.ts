/**
 * Every error that Headgate throws carries one of these codes. The table in
 * `docs/reference/errors.md` lists the same codes; a test holds the two together.
 */
export const ERROR_CODES = {
  HEADGATE_INVALID_ARGUMENT: 'An argument of a library call is not of the documented form',
  HEADGATE_OUT_OF_RANGE: 'The numbers of a limit leave the range in which its arithmetic is exact',
  HEADGATE_NAME_CONFLICT: 'One name stands twice on one store with other numbers',
  HEADGATE_CLIENT_UNKNOWN: 'The Redis client is of no known shape',
  HEADGATE_STORE_UNAVAILABLE: 'The store did not answer within the deadline, or refused',
  HEADGATE_BUSY: 'Too many callers wait already',
  HEADGATE_LIMITED: 'A wrapped function was refused by its limits',
  HEADGATE_CLOSED: 'The limiter, engine or store was used after close()',
  HEADGATE_RULES_INVALID: 'The rule file has errors',
  HEADGATE_RULES_SYNTAX: 'The rule file is not YAML 1.2',
  HEADGATE_RULES_UNKNOWN_KEY: 'A key of the rule file is not known',
  HEADGATE_RULES_DUPLICATE: 'A key or a name stands twice in the rule file',
  HEADGATE_RULES_VALUE: 'A value in the rule file is not of the documented form',
  HEADGATE_RULES_RANGE: 'A number in the rule file is out of range',
  HEADGATE_RULES_CONFLICT: 'Two settings of the rule file contradict each other',
  HEADGATE_RULES_REFERENCE: 'The rule file names something that it does not define',
  HEADGATE_RULES_UNSUPPORTED: 'The rule file asks for something that is not supported yet',
  HEADGATE_RULES_ENV: 'An environment variable that the rule file names is not set',
  HEADGATE_RULES_WARNING: 'The rule file loads, but something in it is probably not meant',
  HEADGATE_RULES_FILE: 'The rule file cannot be read',
  HEADGATE_LISTEN: 'An address cannot be listened on',
  HEADGATE_USAGE: 'A command line is wrong',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

const BRAND = Symbol.for('headgate.error')

/** The base of all errors that Headgate throws; `code` is stable, the message is for people. */
export class HeadgateError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = code
    Object.defineProperty(this, BRAND, { value: true })
  }

  /**
   * Whether a value is an error of Headgate's, also one made by another copy of the library
   * (`instanceof` fails there: CommonJS beside ESM, two versions in one tree).
   */
  static is(value: unknown): value is HeadgateError {
    return typeof value === 'object' && value !== null && BRAND in value
  }
}

/** An argument is not of the documented form. Nothing was charged. */
export class InvalidArgumentError extends HeadgateError {
  /** The argument's name as the caller wrote it, such as `cost` or `limits.user.burst`. */
  readonly argument: string

  constructor(argument: string, problem: string, code: ErrorCode = 'HEADGATE_INVALID_ARGUMENT') {
    super(code, `${argument}: ${problem}`)
    this.argument = argument
  }
}

/** The store did not answer in time or refused, and the caller asked to be told by an error. */
export class StoreUnavailableError extends HeadgateError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('HEADGATE_STORE_UNAVAILABLE', message, options)
  }
}

/** A value as an error message shows it: short, with its type visible, never throwing. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  return String(value)
}
