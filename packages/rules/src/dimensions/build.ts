import { encodeValue, hashValue } from 'headgate'
import { ipKey } from 'headgate/http'
import type { PathSettings } from '../paths/normalize.ts'
import { pathParameter } from '../paths/parameter.ts'
import { decode, type Pattern } from '../paths/pattern.ts'
import type { Dimension, Missing } from './dimension.ts'
import { addressProblem, encodeAddress, type Facts } from './dimension.ts'
import { cookieValue, fieldText, normalizeEmail, queryValue, singleValue } from './fields.ts'
import { networkOf } from './network-of.ts'

/** Where a dimension's value comes from. */
export type DimensionSource =
  | { readonly kind: 'header' | 'cookie' | 'query' | 'path'; readonly name: string }
  | { readonly kind: 'address'; readonly v4: number; readonly v6: number }

export interface DimensionSettings {
  readonly name: string
  readonly source: DimensionSource
  readonly missing: Missing
  readonly secret: boolean
  readonly normalize: 'email' | undefined
}

type Reader = Pick<Dimension, 'read' | 'canonical' | 'origin' | 'problem'>

/** A dimension of the file's. `slot` must be one that no other dimension has. */
export function buildDimension(
  settings: DimensionSettings,
  slot: number,
  keySecret: string | undefined,
  paths: PathSettings,
): Dimension {
  const { name, source, missing, secret, normalize } = settings
  const reader = normalize === 'email' ? asEmail(readerOf(source, paths)) : readerOf(source, paths)
  return {
    name,
    slot: source.kind === 'path' ? -1 : slot,
    missing,
    ...reader,
    encode: secret ? (value) => hashValue(value, keySecret) : (value) => encodeValue(value, keySecret),
  }
}

function readerOf(source: DimensionSource, paths: PathSettings): Reader {
  const canonical = (value: string) => value
  if (source.kind === 'address') {
    const { v4, v6 } = source
    const address = (text: string) => text.replace(/\/\d+$/, '')
    const network = (ip: string) => networkOf(address(ip), v4, v6)
    return {
      origin: `address v4/${v4} v6/${v6}`,
      read: (facts) => network(facts.request.ip),
      canonical: network,
      problem: (value) => addressProblem(address(value)),
    }
  }
  const { kind, name } = source
  const origin = `${kind} ${name}`
  if (kind === 'header') {
    const field = name.toLowerCase()
    return { origin, read: (facts) => singleValue(facts.request.header(field)), canonical }
  }
  if (kind === 'cookie')
    return { origin, read: (facts) => cookieValue(facts.request.header('cookie'), name), canonical }
  if (kind === 'query') return { origin, read: (facts) => queryValue(facts.request.query, name), canonical }
  return {
    origin,
    read: (facts, pattern) => {
      const segment = pattern && pathParameter(pattern, name, facts.request.path, paths)
      return segment === undefined ? undefined : decode(segment)
    },
    canonical,
  }
}

function asEmail({ origin, read }: Reader): Reader {
  return {
    origin,
    read: (facts, pattern) => {
      const value = read(facts, pattern)
      return value === undefined ? undefined : normalizeEmail(fieldText(value))
    },
    canonical: (value) => normalizeEmail(value) ?? value,
  }
}

/** The dimensions that every file has. */
export function builtInDimensions(keySecret: string | undefined): Dimension[] {
  const same = (value: string) => value
  const encode = (value: string) => encodeValue(value, keySecret)
  const routeTexts = new Map<string, string>()
  const base = { missing: 'ip', canonical: same, encode } as const
  return [
    { ...base, name: 'global', slot: 0, origin: 'all callers together', read: () => '', encode: () => '' },
    {
      ...base,
      name: 'ip',
      slot: 1,
      origin: "the caller's address",
      read: (facts) => facts.ip,
      canonical: ipKey,
      problem: addressProblem,
      encode: encodeAddress,
    },
    {
      ...base,
      name: 'method',
      slot: 2,
      origin: 'method',
      read: (facts) => countedMethod(facts.request.method),
      canonical: (value) => countedMethod(value.toUpperCase()),
    },
    { ...base, name: 'host', slot: 3, origin: 'host', read: hostOf, canonical: (value) => value.toLowerCase() },
    {
      ...base,
      name: 'route',
      slot: -1,
      origin: 'the pattern that matched',
      read: routeOf,
      encode: remember(routeTexts, encode),
    },
  ]
}

/** HEAD is counted as GET, or alternating them would double a budget. */
function countedMethod(method: string): string {
  return method === 'HEAD' ? 'GET' : method
}

function hostOf(facts: Facts): string | undefined {
  return facts.request.host === '' ? undefined : facts.request.host
}

function routeOf(facts: Facts, pattern: Pattern | undefined): string {
  return pattern?.text ?? facts.request.route ?? ''
}

const MAX_REMEMBERED = 4096

/** Patterns come from configuration, so they are few; still, nothing grows without bound. */
function remember(texts: Map<string, string>, encode: (value: string) => string): (value: string) => string {
  return (value) => {
    let text = texts.get(value)
    if (text === undefined) {
      if (texts.size >= MAX_REMEMBERED) texts.clear()
      text = encode(value)
      texts.set(value, text)
    }
    return text
  }
}
