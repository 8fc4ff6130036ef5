/** How many spellings of names a table remembers; names come from strangers. */
const MAX_KNOWN = 1024

/**
 * What the gateway does about a header field, by its name in any case. Spellings that arrived are
 * remembered, so that a name is put in lower case once and not for each request.
 */
export class FieldTable<Kind extends number> {
  readonly #known = new Map<string, Kind>()
  readonly #classify: (lowerCaseName: string) => Kind

  constructor(classify: (lowerCaseName: string) => Kind) {
    this.#classify = classify
  }

  kindOf(name: string): Kind {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const kind = this.#classify(name.toLowerCase())
    if (this.#known.size < MAX_KNOWN) this.#known.set(name, kind)
    return kind
  }
}

/**
 * Fields that are between two neighbours (RFC 9110, 7.6.1) and never travel on, beside those that
 * `Connection` names. `Proxy-Status` and the like are for the other end, and stay.
 */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const OF_NO_FIELD: ReadonlySet<string> = new Set(['', 'close', 'keep-alive', 'upgrade', 'te'])

/** The fields that a `Connection` value names beside the usual options, in lower case; undefined: none. */
export function namedByConnection(value: string): ReadonlySet<string> | undefined {
  if (value === 'keep-alive' || value === 'close') return undefined
  let names: Set<string> | undefined
  for (const token of value.split(',')) {
    const name = token.trim().toLowerCase()
    if (OF_NO_FIELD.has(name)) continue
    names ??= new Set()
    names.add(name)
  }
  return names
}

/** Takes the named fields out of an array of names and values in turns. */
export function withoutFields(fields: string[], names: ReadonlySet<string>): void {
  let kept = 0
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (names.has(name.toLowerCase())) continue
    fields[kept] = name
    fields[kept + 1] = fields[i + 1] as string
    kept += 2
  }
  fields.length = kept
}
