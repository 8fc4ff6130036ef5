import type { RuleRequest } from 'headgate'
import { ipMatcher } from 'headgate/http'

/** One thing that a request must fulfil. */
export interface Condition {
  test(request: RuleRequest): boolean
  /** For people, where it fails: `the method is none of GET, HEAD`. No value of the request is in it. */
  readonly why: string
}

/** Browsers ask with it before they send the request itself, without credentials. */
export function isPreflight(request: RuleRequest): boolean {
  return request.method === 'OPTIONS' && request.header('access-control-request-method') !== undefined
}

export const NO_PREFLIGHT: Condition = {
  test: (request) => !isPreflight(request),
  why: 'it is a CORS preflight, and the rule does not name OPTIONS',
}

/** GET includes HEAD. */
export function methodCondition(methods: readonly string[]): Condition {
  const set = new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
  return { test: (request) => set.has(request.method), why: `the method is none of ${[...set].join(', ')}` }
}

export function hostCondition(hosts: readonly string[]): Condition {
  const lower = hosts.map((host) => host.toLowerCase())
  const exact = new Set(lower.filter((host) => !host.startsWith('*.')))
  const endings = lower.filter((host) => host.startsWith('*.')).map((host) => host.slice(1))
  return {
    test: ({ host: given }) => {
      // A final dot is the same host to everybody who answers for it.
      const host = given.endsWith('.') ? given.slice(0, -1) : given
      return exact.has(host) || endings.some((ending) => host.length > ending.length && host.endsWith(ending))
    },
    why: `the host is none of ${lower.join(', ')}`,
  }
}

/** `*` is any value. Of a field that arrived twice, one right value is enough. */
export function headerCondition(name: string, values: readonly string[]): Condition {
  const field = name.toLowerCase()
  if (values.includes('*')) {
    return { test: (request) => (request.header(field)?.length ?? 0) > 0, why: `there is no field ${field}` }
  }
  const set = new Set(values)
  return {
    test: (request) => request.header(field)?.some((value) => set.has(value)) ?? false,
    why: `the field ${field} has none of the rule's values`,
  }
}

export function ipCondition(networks: readonly string[]): Condition {
  const matches = ipMatcher(networks, 'ip')
  return { test: (request) => matches(request.ip), why: `the address is in none of ${networks.join(', ')}` }
}

/** Holds unless all of the conditions do. */
export function notCondition(conditions: readonly Condition[]): Condition {
  return {
    test: (request) => !conditions.every((condition) => condition.test(request)),
    why: "the request is what the rule's not excludes",
  }
}
