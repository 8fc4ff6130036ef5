/** Characters and forms that paths are refused for, unless a setting allows them. */
export const PATH_EXCEPTIONS = ['%2F', '%5C', '\\', ';', '#', '%00', '%25', '%'] as const

export type PathException = (typeof PATH_EXCEPTIONS)[number]

export interface PathSettings {
  /** Whether `/Login` and `/login` are two paths. */
  readonly caseSensitive: boolean
  /** Whether `/login/` and `/login` are two paths. */
  readonly trailingSlashStrict: boolean
  /**
   * What is let through although servers disagree about it: `%2F %5C \ ; # %00`, `%25` (before two
   * hex digits: double encoding), `%` (broken escapes, and escapes that are not UTF-8).
   */
  readonly allow: readonly PathException[]
}

export const DEFAULT_PATHS: PathSettings = { caseSensitive: false, trailingSlashStrict: false, allow: [] }

export type NormalizedTarget =
  | {
      readonly ok: true
      /** What is matched and what is forwarded. */
      readonly path: string
      /** What follows the first `?`, without it, as it came. */
      readonly query: string
      /** Host and port of an absolute target; absent in origin form. */
      readonly authority?: string
    }
  | { readonly ok: false; readonly problem: string }

const refuse = (problem: string): NormalizedTarget => ({ ok: false, problem })

const UNRESERVED = /^[A-Za-z0-9._~-]$/
const ABSOLUTE = /^https?:\/\/([^/?#\\]*)/i

/** 1: stands in a path as it is and starts nothing. Made of unreserved, sub-delims, `:` and `@`, less `;`. */
const PLAIN = new Uint8Array(256)
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&'()*+,=:@")
  PLAIN[char.charCodeAt(0)] = 1

const SLASH = 47
const DOT = 46
const PERCENT = 37

/**
 * Normalises a request's target; the result is matched and forwarded alike. Idempotent.
 *
 * Origin form (`/a?b`) and absolute form (`http://host/a?b`). In the path, repeated slashes become
 * one; `.` and `..` segments are resolved, also those written with escapes, never above the root;
 * escapes of unreserved characters (`A-Z a-z 0-9 - . _ ~`) become these characters; all other
 * escapes stay, with upper-case digits; characters that a path cannot hold (`" < > ^ { | }` …, bytes
 * from 0x80) become escapes. Refused, since servers disagree about them: `%2F %5C \ ; #`, NUL,
 * escapes that are broken or not UTF-8 (overlong forms are not), double encoding (`%25` before two
 * hex digits), white space and control characters; `settings.allow` lets some of them through.
 *
 * @param rawTarget as it came, one character for each byte, as `node:http` gives it
 */
export function normalizePath(rawTarget: string, settings: PathSettings = DEFAULT_PATHS): NormalizedTarget {
  const absolute = rawTarget.charCodeAt(0) === SLASH ? null : ABSOLUTE.exec(rawTarget)
  if (!absolute && rawTarget.charCodeAt(0) !== SLASH) return refuse('the target is neither a path nor an http URL')
  const authority = absolute?.[1]
  if (authority !== undefined && !/^[^@\s]+$/.test(authority))
    return refuse('the target has no host, or has credentials')
  const start = absolute?.[0].length ?? 0
  const mark = rawTarget.indexOf('?', start)
  const end = mark < 0 ? rawTarget.length : mark
  const query = mark < 0 ? '' : rawTarget.slice(mark + 1)
  const queryProblem = query === '' ? undefined : problemOfQuery(query, settings)
  if (queryProblem) return refuse(queryProblem)
  if (isPlain(rawTarget, start, end)) return target(rawTarget.slice(start, end) || '/', query, authority)
  const raw = rawTarget.slice(start, end)
  // An absolute target may have no path: http://host?x
  return normalized(raw === '' ? '/' : raw, query, authority, settings)
}

function target(path: string, query: string, authority: string | undefined): NormalizedTarget {
  return authority === undefined ? { ok: true, path, query } : { ok: true, path, query, authority }
}

/** Whether the text is normal as it is: plain characters, no empty segment, none that begins with a dot. */
function isPlain(text: string, start: number, end: number): boolean {
  let slash = false
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i)
    if (code === SLASH) {
      if (slash) return false
      slash = true
    } else if (code < 256 && (PLAIN[code] === 1 || (code === DOT && !slash))) slash = false
    else return false
  }
  return start < end
}

function normalized(
  raw: string,
  query: string,
  authority: string | undefined,
  settings: PathSettings,
): NormalizedTarget {
  const { allow } = settings
  const escaped = normalizeCharacters(raw, allow)
  if (typeof escaped !== 'string') return refuse(escaped.problem)
  if (!allow.includes('%25') && /%25[0-9A-F]{2}/i.test(escaped))
    return refuse('the path is encoded twice (%25 before two hex digits)')
  if (!allow.includes('%') && /%[89A-F]/.test(escaped) && !decodes(escaped)) {
    return refuse('the path has escapes that are not UTF-8')
  }
  return target(resolveDots(escaped), query, authority)
}

type Piece = string | { readonly problem: string }

/** Each character and escape in its one form. */
function normalizeCharacters(raw: string, allow: readonly PathException[]): Piece {
  let text = ''
  const broken: number[] = []
  for (let i = 0; i < raw.length; i++) {
    const piece = raw.charCodeAt(i) === PERCENT ? normalEscape(raw, i, allow) : normalCharacter(raw, i, allow)
    if (typeof piece !== 'string') return piece
    if (piece === '%') broken.push(text.length)
    else if (raw.charCodeAt(i) === PERCENT) i += 2
    text += piece
  }
  // A broken escape must not become a right one because what follows it was taken apart.
  const nested = broken.some((at) => escapeAt(text, at) !== undefined)
  return nested ? { problem: 'the path has nested broken escapes' } : text
}

/** The escape at a place, or the character that it need not hide; `%` alone for a broken one. */
function normalEscape(raw: string, at: number, allow: readonly PathException[]): Piece {
  const encoded = escapeAt(raw, at)
  if (encoded === undefined) {
    return allow.includes('%') ? '%' : { problem: 'the path has a broken escape (% without two hex digits)' }
  }
  if ((encoded === '%2F' || encoded === '%5C' || encoded === '%00') && !allow.includes(encoded)) {
    return { problem: `the path has ${encoded}` }
  }
  const decoded = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
  return UNRESERVED.test(decoded) ? decoded : encoded
}

function normalCharacter(raw: string, at: number, allow: readonly PathException[]): Piece {
  const char = raw.charAt(at)
  const code = raw.charCodeAt(at)
  if (code === SLASH || code === DOT || (code < 256 && PLAIN[code] === 1)) return char
  if (char === '\\' || char === ';' || char === '#')
    return allow.includes(char) ? char : { problem: `the path has ${char}` }
  if (code > 32 && code !== 127 && code < 256) return percent(code)
  return { problem: 'the path has white space, a control character or one beyond a byte' }
}

function escapeAt(raw: string, at: number): string | undefined {
  const encoded = raw.slice(at, at + 3)
  return /^%[0-9A-Fa-f]{2}$/.test(encoded) ? encoded.toUpperCase() : undefined
}

function percent(code: number): string {
  return `%${code.toString(16).toUpperCase().padStart(2, '0')}`
}

function resolveDots(path: string): string {
  const segments = path.split('/')
  const last = segments.at(-1)
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && segment !== '') kept.push(segment)
  }
  const directory = last === '' || last === '.' || last === '..'
  return kept.length === 0 ? '/' : `/${kept.join('/')}${directory ? '/' : ''}`
}

function problemOfQuery(query: string, settings: PathSettings): string | undefined {
  for (let i = 0; i < query.length; i++) {
    const code = query.charCodeAt(i)
    if (code <= 32 || code === 127 || code > 255)
      return 'the query has white space, a control character or one beyond a byte'
    if (code === 35 && !settings.allow.includes('#')) return 'the target has a fragment (#)'
  }
  return undefined
}

function decodes(text: string): boolean {
  try {
    decodeURIComponent(text.replace(/%25/g, '').replace(/%(?![0-9A-F]{2})/g, ''))
    return true
  } catch {
    return false
  }
}
