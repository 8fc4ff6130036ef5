import { type ErrorCode, HeadgateError } from 'headgate'

/** Something wrong in a rule file, and where. */
export interface Problem {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
  readonly code: ErrorCode
  /** Where in the file's structure, such as `rules[0].limits[1].burst`; empty for the file itself. */
  readonly path: string
  /** What is wrong and what to write. It never holds an expanded value, a token or a URL's credentials. */
  readonly message: string
  readonly severity: 'error' | 'warning'
}

/** A problem on one line: `FILE:LINE:COL: error[CODE]: path: what is wrong`. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, severity, code, path, message } = problem
  return `${file}:${line}:${column}: ${severity}[${code}]: ${path === '' ? '' : `${path}: `}${message}`
}

/** A rule file that cannot be used; its message lists all errors, one a line, in the order of the file. */
export class RuleFileError extends HeadgateError {
  /** Errors and warnings, by line. */
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[], options?: { cause?: unknown }) {
    const errors = problems.filter((problem) => problem.severity === 'error')
    const codes = new Set(errors.map((problem) => problem.code))
    const code = codes.size === 1 ? (errors[0] as Problem).code : 'HEADGATE_RULES_INVALID'
    super(code, errors.map(formatProblem).join('\n'), options)
    this.problems = problems
  }
}
