import type { ErrorCode } from 'headgate'
import type { Problem } from '../problem.ts'
import { didYouMean } from '../suggest.ts'
import { type Path, pathText } from './tree.ts'

export interface Place {
  readonly line: number
  readonly column: number
}

/** What a report asks of the parsed text. */
export interface Located {
  place(path: Path, part: 'key' | 'value' | 'last-key'): Place
  /** The value as the file has it, variables not put in; undefined where there is none. */
  written(path: Path): string | undefined
  /** Whether the value's text came from the environment. */
  expanded(path: Path): boolean
}

export interface ProblemOptions {
  /** Point at the key instead of the value. */
  readonly at?: 'key' | 'value'
  /** What the value could have been meant to be. */
  readonly options?: readonly string[] | undefined
  /** The value put right; it holds parts of the value, so it is shown only where those may be. */
  readonly fix?: string | undefined
  readonly severity?: 'error' | 'warning'
}

/** Values of these keys are never shown, whatever is wrong with them. */
const SECRET_KEYS = new Set(['token', 'readToken', 'keySecret', 'store'])
const MAX_SHOWN = 60

/** Collects a file's problems. In a message `{}` stands for the value as it is written in the file. */
export class Report {
  readonly file: string
  readonly source: Located
  private readonly problems: Problem[] = []
  private readonly meant = new Set<string>()

  constructor(file: string, source: Located) {
    this.file = file
    this.source = source
  }

  get failed(): boolean {
    return this.problems.some((problem) => problem.severity === 'error')
  }

  /** A key that is probably there under a wrong name: what follows from its absence is no news. */
  misspelt(path: Path): void {
    this.meant.add(pathText(path))
  }

  /** Whether an error was found at a place or anywhere below it. */
  failedWithin(path: Path): boolean {
    const text = pathText(path)
    if (this.meant.has(text)) return true
    const below = (inner: string) => inner === text || inner.startsWith(`${text}.`) || inner.startsWith(`${text}[`)
    return this.problems.some((problem) => problem.severity === 'error' && below(problem.path))
  }

  /** All problems by line and column. */
  sorted(): Problem[] {
    return [...this.problems].sort((a, b) => a.line - b.line || a.column - b.column)
  }

  add(path: Path, code: ErrorCode, message: string, options: ProblemOptions = {}): void {
    const place = this.source.place(path, options.at ?? 'value')
    const shown = message.replace('{}', () => this.shown(path))
    const { options: known = [], fix } = options
    const hidden = this.source.expanded(path) || isSecret(path)
    const hint = hidden ? '' : fix === undefined ? didYouMean(this.word(path), known) : `; write ${fix}`
    this.addAt(place, code, path, shown + hint, options.severity)
  }

  warn(path: Path, message: string, at: 'key' | 'value' = 'value'): void {
    this.add(path, 'HEADGATE_RULES_WARNING', message, { at, severity: 'warning' })
  }

  addAt(place: Place, code: ErrorCode, path: Path | string, message: string, severity: Problem['severity'] = 'error') {
    const text = typeof path === 'string' ? path : pathText(path)
    this.problems.push({ file: this.file, ...place, code, path: text, message, severity })
  }

  private shown(path: Path): string {
    if (isSecret(path)) return 'the value'
    const written = this.source.written(path) ?? 'nothing'
    const safe = withoutCredentials(written)
    return safe.length > MAX_SHOWN ? `${safe.slice(0, MAX_SHOWN - 3)}...` : safe
  }

  private word(path: Path): string | undefined {
    const written = this.source.written(path)
    return written?.startsWith('"') ? (JSON.parse(written) as string) : written
  }
}

function isSecret(path: Path): boolean {
  return path.some((step) => SECRET_KEYS.has(step as string))
}

/** Whatever may be credentials in a URL is not shown, also where the URL is not quite one. */
export function withoutCredentials(text: string): string {
  return text.replace(/:[^\s]*@/, '://***@')
}
