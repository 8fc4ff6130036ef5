import { decode } from '../paths/pattern.ts'

/** The one value of a field; undefined where it is absent, empty, or arrived twice with different values. */
export function singleValue(values: readonly string[] | undefined): string | undefined {
  const first = values?.[0]
  if (first === undefined || first === '') return undefined
  for (let i = 1; i < (values as readonly string[]).length; i++) {
    if ((values as readonly string[])[i] !== first) return undefined
  }
  return first
}

/**
 * The one value of a cookie, as servers read it: quotes off, escapes read. Undefined where it is
 * absent, empty, unreadable, or there twice with different values.
 */
export function cookieValue(lines: readonly string[] | undefined, name: string): string | undefined {
  let found: string | undefined
  for (const line of lines ?? []) {
    for (let start = 0; start <= line.length; ) {
      const stop = indexOr(line, ';', start)
      const equals = line.indexOf('=', start)
      if (equals >= 0 && equals < stop && line.slice(start, equals).trim() === name) {
        const value = unquoted(line.slice(equals + 1, stop).trim())
        if (found !== undefined && value !== found) return undefined
        found = value
      }
      start = stop + 1
    }
  }
  return readable(found)
}

/**
 * The one value of a query parameter, as forms encode it (`+` is a space). Undefined where it is
 * absent, empty, unreadable, or there twice with different values.
 */
export function queryValue(query: string, name: string): string | undefined {
  let found: string | undefined
  for (let start = 0; start < query.length; ) {
    const stop = indexOr(query, '&', start)
    const equals = query.indexOf('=', start)
    const end = equals >= 0 && equals < stop ? equals : stop
    if (formDecode(query.slice(start, end)) === name) {
      const value = formDecode(query.slice(Math.min(end + 1, stop), stop))
      if (value === undefined || (found !== undefined && value !== found)) return undefined
      found = value
    }
    start = stop + 1
  }
  return found === '' ? undefined : found
}

/** E-mail addresses in one spelling: no space around, lower case, Unicode NFC. */
export function normalizeEmail(value: string): string | undefined {
  const normal = value.normalize('NFC').trim().toLowerCase().normalize('NFC')
  return normal === '' ? undefined : normal
}

/** Bytes above 0x7F of a field arrive one character each; this reads them as UTF-8 where they are. */
export function fieldText(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  if (bytes.toString('latin1') !== value) return value
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : value
}

function formDecode(text: string): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? decode(spaced) : spaced
}

function readable(value: string | undefined): string | undefined {
  const text = value?.includes('%') ? decode(value) : value
  return text === '' ? undefined : text
}

function unquoted(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
}

function indexOr(text: string, char: string, start: number): number {
  const index = text.indexOf(char, start)
  return index < 0 ? text.length : index
}
