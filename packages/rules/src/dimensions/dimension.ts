import { isIP } from 'node:net'
import { encodeValue, type RuleRequest } from 'headgate'
import { ipKey, UNIX } from 'headgate/http'
import type { Pattern } from '../paths/pattern.ts'

/** Begins the counters of callers without a value. */
export const ADDRESS_ROOM = '~ip:'

const MISSING = null
const NOT_ADDRESS = /[^0-9a-f.:]/

/** What to do where a request carries no value. */
export type Missing = 'ip' | 'skip' | 'deny'

/** Something that limits count by. */
export interface Dimension {
  readonly name: string
  /** Where a request's value is remembered; -1: it depends on the rule, too. */
  readonly slot: number
  readonly missing: Missing
  /** Where the value comes from, for people: `header x-user-id`. */
  readonly origin: string
  /** The caller's value, normalised; undefined: missing. `pattern` is the rule's pattern that matched. */
  read(facts: Facts, pattern: Pattern | undefined): string | undefined
  /** What is wrong with a value as an operator writes it, in words without it; most dimensions take any. */
  problem?(value: string): string | undefined
  /** A value as an operator writes it, brought to the form that {@link read} gives. */
  canonical(value: string): string
  /** The value's text in keys. Different values have different texts. */
  encode(value: string): string
}

/** One request while rules look at it: what a dimension reads is read and encoded once. */
export class Facts {
  readonly request: RuleRequest
  private readonly values: (string | typeof MISSING | undefined)[] = []
  private readonly texts: (string | undefined)[] = []
  private address: string | undefined
  private room: string | undefined

  constructor(request: RuleRequest) {
    this.request = request
  }

  /** What the caller is counted by: an IPv4 address, or an IPv6 /64. */
  get ip(): string {
    this.address ??= ipKey(this.request.ip)
    return this.address
  }

  /** The counter of callers by address where a value is missing. No encoded value looks like it. */
  get addressRoom(): string {
    this.room ??= addressRoom(this.ip)
    return this.room
  }

  /** The value of a dimension; undefined: missing. */
  value(dimension: Dimension, pattern: Pattern | undefined): string | undefined {
    const { slot } = dimension
    if (slot < 0) return dimension.read(this, pattern)
    const known = this.values[slot]
    if (known !== undefined) return known === MISSING ? undefined : known
    const value = dimension.read(this, pattern)
    this.values[slot] = value ?? MISSING
    return value
  }

  /** The text of a value in keys. */
  text(dimension: Dimension, value: string): string {
    const { slot } = dimension
    if (slot < 0) return dimension.encode(value)
    const known = this.texts[slot]
    if (known !== undefined) return known
    const text = dimension.encode(value)
    this.texts[slot] = text
    return text
  }
}

/** The counter of callers without a value, by {@link Facts.ip}. No encoded value looks like it. */
export function addressRoom(ip: string): string {
  return `${ADDRESS_ROOM}${encodeAddress(ip)}`
}

/** What is wrong with an address as an operator writes it. */
export function addressProblem(value: string): string | undefined {
  if (isIP(value) !== 0 || value === UNIX) return undefined
  return 'is not an address; write one such as 203.0.113.7 or 2001:db8::1, or unix for a unix socket'
}

/** An address inside a key: of its characters only `:` is escaped. */
export function encodeAddress(ip: string): string {
  return NOT_ADDRESS.test(ip) ? encodeValue(ip) : ip.replaceAll(':', '%3A')
}
