import { FieldTable, HOP_BY_HOP, namedByConnection, withoutFields } from '../field-table.ts'

const PASS = 0
const DROP = 1
const CONNECTION = 2
const HOST = 3
const CONTENT_LENGTH = 4
const TRANSFER_ENCODING = 5
// From here on, what is told about the caller: from a stranger it is not forwarded.
const FORWARDED_FOR = 6
const FORWARDED_PROTO = 7
const FORWARDED_HOST = 8
const FORWARDED = 9
/** Other fields by which a proxy tells about a client: they count only from a trusted peer. */
const TOLD_BY_PROXY = 10

type Kind = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10

const KINDS: Record<string, Kind> = {
  connection: CONNECTION,
  host: HOST,
  'content-length': CONTENT_LENGTH,
  'transfer-encoding': TRANSFER_ENCODING,
  'x-forwarded-for': FORWARDED_FOR,
  'x-forwarded-proto': FORWARDED_PROTO,
  'x-forwarded-host': FORWARDED_HOST,
  forwarded: FORWARDED,
  // The gateway itself answers what the client expects.
  expect: DROP,
  // Some CGI-like upstreams take it for the variable HTTP_PROXY.
  proxy: DROP,
  // Only the gateway says so.
  'x-headgate-overflow': DROP,
}

/** Tells the upstream of a request that waited in vain and was let by: the rule's name. */
export const OVERFLOW = 'X-Headgate-Overflow'

/** Sorts the fields of requests; `addressField` is the one that tells the caller's address. */
export function requestFields(addressField: string): FieldTable<Kind> {
  return new FieldTable((name) => {
    const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined
    if (kind !== undefined) return kind
    if (HOP_BY_HOP.has(name)) return DROP
    return name === addressField || name.startsWith('x-forwarded-') ? TOLD_BY_PROXY : PASS
  })
}

/** The head of a request, sorted in one pass: what travels on, and what the gateway acts on itself. */
export class RequestHead {
  /** Names and values in turns, as they came: what the upstream gets, but for the fields below. */
  readonly fields: string[] = []
  host: string | undefined
  hosts = 0
  contentLength: string | undefined
  chunked = false
  /** Another coding than chunked alone: others may see another end of the body. */
  misframed = false
  forwardedFor: string | undefined
  forwardedProto: string | undefined
  forwardedHost: string | undefined
  forwarded: string | undefined
  #connection: string | undefined
  readonly #table: FieldTable<Kind>
  readonly #trusted: boolean
  readonly #named: ReadonlySet<string> | undefined

  constructor(raw: readonly string[], table: FieldTable<Kind>, trusted: boolean) {
    this.#table = table
    this.#trusted = trusted
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i] as string
      const kind = table.kindOf(name)
      if (kind === PASS || (kind === TOLD_BY_PROXY && trusted)) this.fields.push(name, raw[i + 1] as string)
      else if (kind !== DROP) this.#take(kind, raw[i + 1] as string)
    }
    this.#named = this.#connection === undefined ? undefined : namedByConnection(this.#connection)
    if (this.#named) withoutFields(this.fields, this.#named)
  }

  /**
   * Whether a field by its lower-case name was the client's to take away (RFC 9110, 7.6.1), or tells
   * about the caller and comes from a stranger: such a field is not forwarded.
   */
  hides(name: string): boolean {
    if (this.#named?.has(name)) return true
    return !this.#trusted && this.#table.kindOf(name) >= FORWARDED_FOR
  }

  /** Whether a body is announced that is not empty by its announcement. */
  get hasBody(): boolean {
    return this.chunked || (this.contentLength !== undefined && this.contentLength !== '0')
  }

  #take(kind: Kind, value: string): void {
    switch (kind) {
      case HOST:
        this.host ??= value
        this.hosts += 1
        break
      case CONNECTION:
        this.#connection = joined(this.#connection, value)
        break
      case CONTENT_LENGTH:
        this.contentLength = value
        break
      case TRANSFER_ENCODING:
        if (this.chunked || (value !== 'chunked' && value.toLowerCase() !== 'chunked')) this.misframed = true
        this.chunked = true
        break
      case FORWARDED_FOR:
        this.forwardedFor = joined(this.forwardedFor, value)
        break
      case FORWARDED_PROTO:
        this.forwardedProto = joined(this.forwardedProto, value)
        break
      case FORWARDED_HOST:
        this.forwardedHost = joined(this.forwardedHost, value)
        break
      case FORWARDED:
        this.forwarded = joined(this.forwarded, value)
        break
    }
  }
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`
}

/** The values of a field by its lower-case name, one for each time it arrived. */
export function valuesOf(raw: readonly string[], name: string): string[] | undefined {
  let values: string[] | undefined
  for (let i = 0; i < raw.length; i += 2) {
    const field = raw[i] as string
    if (field.length !== name.length || (field !== name && field.toLowerCase() !== name)) continue
    if (values) values.push(raw[i + 1] as string)
    else values = [raw[i + 1] as string]
  }
  return values
}
