import { normalizePath, type PathSettings } from './normalize.ts'

/** A path pattern, compiled. */
export interface Pattern {
  /** As it is written. */
  readonly text: string
  readonly segments: readonly Segment[]
  /** Ends with `/*`: everything below matches too. */
  readonly open: boolean
}

export type Segment =
  | { readonly kind: 'static' /** Escapes read; lower case where case does not count. */; readonly text: string }
  | { readonly kind: 'param'; readonly name: string }

/** What is wrong with a pattern; `{}` stands for the pattern, `fix` is one that is right. */
export interface PatternProblem {
  readonly message: string
  readonly fix?: string
}

export function isPattern(value: Pattern | PatternProblem): value is Pattern {
  return 'segments' in value
}

const PARAM = /^:[A-Za-z_][A-Za-z0-9_]*$/
/** A segment as other routers write a parameter: `{id}`, `{id:int}`, `<int:id>`, `[id]`. */
const FOREIGN = /(?<=\/)[{<[](?:\w+:(?=\w+[>\]]))?([A-Za-z_]\w*)(?::[^/]*)?[}>\]](?=\/|$)/g
/** The same for all that follows: `{path*}`, `{*path}`, `[...path]`. */
const FOREIGN_REST = /(?<=\/)[{<[](?:\*|\.\.\.)?\w+(?:\*|\.\.\.)?[}>\]]$/
const BRACKETS = /[{}<>[\]]/

/**
 * Compiles a pattern: `/a/:p` (`:p` is one non-empty segment), `/a/*` (`/a`, `/a/` and all below).
 * Static parts are normalised as requests are.
 * @returns what is wrong instead
 */
export function parsePattern(text: string, settings: PathSettings): Pattern | PatternProblem {
  if (!text.startsWith('/'))
    return { message: '{} is not a path; write one that begins with /, such as /api/login or /api/*' }
  if (text.includes('?'))
    return { message: '{} has a query, and paths are matched without it; leave out the ? and what follows' }
  if (BRACKETS.test(text)) return bracketProblem(text)
  const bytes = Buffer.from(text, 'utf8').toString('latin1')
  const normal = normalizePath(bytes, settings)
  if (!normal.ok) return { message: `{} can match no request: ${normal.problem}; requests like it are refused` }
  if (countSlashes(normal.path) !== countSlashes(bytes)) {
    return { message: '{} can match no request: paths arrive normalised', fix: normal.path }
  }
  const parts = split(normal.path, settings)
  const open = parts.at(-1) === '*'
  if (open) parts.pop()
  const segments: Segment[] = []
  const names = new Set<string>()
  for (const part of parts) {
    if (part.includes('*'))
      return { message: '{} has a * inside; only a final /* is a wildcard (write %2A for the character)' }
    if (!part.startsWith(':')) {
      segments.push({ kind: 'static', text: readEscapes(foldCase(part, settings)) })
      continue
    }
    if (!PARAM.test(part))
      return { message: '{} has a parameter without a right name; write :name, or %3A for a colon' }
    const name = part.slice(1)
    if (names.has(name)) return { message: `{} has :${name} twice; give the parameters different names` }
    names.add(name)
    segments.push({ kind: 'param', name })
  }
  return { text, segments, open }
}

/** Brackets would match only themselves, so that a rule in another router's spelling protects nothing. */
function bracketProblem(text: string): PatternProblem {
  const fix = text.replace(FOREIGN, ':$1').replace(FOREIGN_REST, '*')
  const message = '{} has brackets, and a parameter is written :name'
  return BRACKETS.test(fix)
    ? { message: `${message}; write :name, or the character as an escape, such as %7B` }
    : { message, fix }
}

/** The segments of a normalised path. One final slash is not looked at, unless the settings say so. */
export function split(path: string, settings: PathSettings): string[] {
  const end = endOf(path, settings)
  return end === 0 ? [] : path.slice(1, end).split('/')
}

/** Where matching stops reading a path. */
export function endOf(path: string, settings: PathSettings): number {
  return !settings.trailingSlashStrict && path.endsWith('/') ? path.length - 1 : path.length
}

/** Lower case in ASCII, where case does not count. */
export function foldCase(path: string, settings: PathSettings): string {
  return !settings.caseSensitive && /[A-Z]/.test(path) ? path.replace(/[A-Z]+/g, (text) => text.toLowerCase()) : path
}

/**
 * A segment with its escapes read, so that no spelling of one segment evades a rule: some servers
 * tell `a%3Ab` from `a:b`, most do not. Where it cannot be read it stays as it is.
 */
export function readEscapes(segment: string): string {
  return segment.includes('%') ? (decode(segment) ?? segment) : segment
}

/** undefined: broken escapes, or not UTF-8. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function countSlashes(text: string): number {
  return text.split('/').length
}
