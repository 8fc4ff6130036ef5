/** Longer elements are not read: no proxy writes them, and reading one costs more than its length. */
const MAX_ELEMENT = 512
const PAIR = /^\s*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))\s*$/s

/**
 * Where the last element of a list begins: the index of its comma, -1 where there is only one
 * element. Commas inside quotes do not count. Quotes are paired from the right, since what stands on
 * the right was written by a proxy, and what a caller wrote on the left must not swallow it.
 */
export function commaBefore(list: string, end: number): number {
  let quoted = false
  for (let i = end - 1; i >= 0; i--) {
    const char = list.charCodeAt(i)
    if (char === 34) {
      if (!quoted || !escaped(list, i)) quoted = !quoted
    } else if (char === 44 && !quoted) return i
  }
  return -1
}

/** The `for` of one element of a Forwarded field (RFC 7239), unquoted; undefined where there is none or two. */
export function forParameter(element: string): string | undefined {
  if (element.length > MAX_ELEMENT) return undefined
  let found: string | undefined
  for (const text of pairsOf(element)) {
    if (text.trim() === '') continue
    const pair = PAIR.exec(text)
    if (!pair) return undefined
    if (pair[1]?.toLowerCase() !== 'for') continue
    if (found !== undefined) return undefined
    found = pair[2]?.replace(/\\(.)/gs, '$1') ?? pair[3]
  }
  return found
}

/** An entry of a plain list; some proxies quote IPv6 addresses there too. */
export function unquoted(entry: string): string {
  return entry.length > 1 && entry.startsWith('"') && entry.endsWith('"') ? entry.slice(1, -1) : entry
}

function pairsOf(element: string): string[] {
  return element.match(/(?:"(?:[^"\\]|\\.)*"|[^";])+|"/gs) ?? []
}

function escaped(list: string, quote: number): boolean {
  let slashes = 0
  while (list.charCodeAt(quote - 1 - slashes) === 92) slashes++
  return slashes % 2 === 1
}
