import type { CheckItem } from './part.ts'

/** A request as rules see it. Adapters and the gateway make one; rules read it. */
export interface RuleRequest {
  /** Upper case. */
  readonly method: string
  /** The normalised path, without the query. */
  readonly path: string
  /** What follows the `?`, without it; empty where there is none. */
  readonly query: string
  /** The host without the port, lower case; empty where there is none. */
  readonly host: string
  /** The caller's address: canonical IPv4 or IPv6, or `unix`. */
  readonly ip: string
  /** Whether the peer that the request came from is trusted to set fields such as the cost. */
  readonly trusted: boolean
  /** The pattern of the route that will serve it, where the caller knows one. */
  readonly route?: string | undefined
  /** The values of a field by its lower-case name, one for each time it arrived. */
  header(name: string): readonly string[] | undefined
}

/** What rules say about a request. */
export type RuleMatch =
  /** Refused by a list: 403, nothing charged. */
  | { readonly outcome: 'deny'; readonly rule: string }
  /** Passed by a list: no limit applies, nothing charged. */
  | { readonly outcome: 'allow'; readonly rule: string }
  /** A rule needs a dimension that the request does not carry, and refuses such requests: 400. */
  | { readonly outcome: 'missing'; readonly rule: string; readonly dimension: string }
  /** Judge these limits as one check; none: no rule applies. */
  | { readonly outcome: 'check'; readonly items: readonly CheckItem[]; readonly rules: readonly MatchedRule[] }

/** A rule that matched and has limits. */
export interface MatchedRule {
  readonly name: string
  /** Which rate-limit fields an answer carries for this rule's limits. */
  readonly headers: 'standard' | 'legacy' | 'both' | 'off'
  /** Whether `global` limits are shown also when they did not refuse. */
  readonly disclose: boolean
  /**
   * The names of its limits that all callers share (`by: global`, and nothing else); empty where it
   * has none. An answer shows them only where they refused, or with `disclose`: else every caller
   * could read how busy the service is. Keep one object for a rule as long as the rules live: what
   * answers need of it is cached by its identity.
   */
  readonly globalLimits: readonly string[]
  /** Judged and counted, not enforced: an answer says nothing of it. Default false. */
  readonly shadow?: boolean | undefined
  /** How long a request may wait in line, in ms; default 0. */
  readonly maxWaitMs?: number | undefined
  /** What becomes of a request that waited in vain; default `refuse`. */
  readonly afterWait?: 'refuse' | 'allow' | undefined
  /** Statuses of answers whose requests are charged; absent: every request is. */
  readonly countIf?: ReadonlySet<number> | undefined
}

/** A compiled set of rules: adapters know nothing more of the rule file. */
export interface RuleSet {
  /** Changes whenever the rules change. */
  readonly version: string
  match(request: RuleRequest): RuleMatch
}
