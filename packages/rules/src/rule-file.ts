import type { Accuracy, CheckItem, Limit, RuleMatch, RuleRequest, RuleSet, StoreFailurePolicy } from 'headgate'
import type { ListenAddress } from './listen.ts'
import type { PathSettings } from './paths/normalize.ts'
import type { Problem } from './problem.ts'
import type { StoreSettings } from './store-url.ts'

/** A rule file, compiled. */
export interface RuleFile extends RuleSet {
  /** As it was named by the caller. */
  readonly file: string
  /** What loads but is probably not meant, by line. */
  readonly warnings: readonly Problem[]
  /** A URL in it may hold credentials: never print it, print {@link storeName}. */
  readonly store: StoreSettings
  /** The store for people, without credentials. */
  readonly storeName: string
  readonly prefix: string
  readonly timeoutMs: number
  readonly instances: number
  readonly gateway?: GatewaySettings
  readonly admin?: AdminSettings
  /** All rules in the order of the file, those that are off too. */
  readonly rules: readonly CompiledRule[]
  /** The gateway's route for a normalised path: exact before longest. */
  routeFor(path: string): Route | undefined
  /** Which rules match a request, which counters it meets, and why the others do not match. Changes nothing. */
  explain(request: RuleRequest): Explanation
  /**
   * The limits of a rule for given values, for looking at counters and resetting them. Without
   * `limit`: those for which all values are given (`global` needs none), and that use at least one;
   * with neither limit nor values, those that all callers share. A caller that is counted by
   * address for want of a value is named `~ip:ADDRESS`, as {@link explain} shows it.
   * @throws HeadgateError HEADGATE_USAGE for an unknown rule, limit or dimension, and where a value is not given
   */
  itemsFor(rule: string, limit: string | undefined, values: Readonly<Record<string, string>>): CheckItem[]
}

export interface GatewaySettings {
  readonly listen: ListenAddress
  readonly workers: 1
  readonly drainMs: number
  readonly paths: PathSettings
  readonly cors: { readonly origins: readonly string[] }
  readonly trustedProxies: readonly string[]
  /** Instead of `trustedProxies`, never beside it. */
  readonly trustedHops?: number
  /** The one field read for the caller's address, lower case. */
  readonly clientAddress: string
  readonly routes: readonly Route[]
}

export interface Route {
  /** The pattern as it is written. */
  readonly path: string
  /** Origins, such as `http://127.0.0.1:3000`; at least one. */
  readonly upstreams: readonly string[]
  /** Which Host the upstream sees: the caller's, or its own. */
  readonly host: 'pass' | 'upstream'
  readonly stripPrefix: boolean
  /** Until response headers, then between pieces of the body. */
  readonly timeoutMs: number
}

export interface AdminSettings {
  readonly listen: ListenAddress
  readonly token?: string
  readonly readToken?: string
  /** Host names that are answered beside IP literals and localhost, lower case. */
  readonly hosts: readonly string[]
}

/** A rule as the file has it, with defaults filled in. */
export interface CompiledRule {
  readonly name: string
  readonly description?: string
  readonly kind: 'limits' | 'allow' | 'deny'
  readonly mode: 'enforce' | 'shadow' | 'off'
  readonly onStoreFailure: StoreFailurePolicy
  readonly accuracy: Accuracy
  readonly headers: 'standard' | 'legacy' | 'both' | 'off'
  readonly disclose: boolean
  readonly cost: number | CostHeader
  /** What it matches, in words: `GET /api/product/detail`. */
  readonly match: string
  /** Empty for `allow` and `deny`. */
  readonly limits: readonly CompiledLimit[]
  /** Limits that are judged beside those of the same names; empty where there is no candidate. */
  readonly candidate: readonly CompiledLimit[]
  /** How long a request may wait in line; 0: not at all. */
  readonly maxWaitMs: number
  /** What becomes of a request that waited in vain. */
  readonly afterWait: 'refuse' | 'allow'
  /** Statuses of answers that are charged; absent: every request is. */
  readonly countIf?: ReadonlySet<number>
  readonly penalty?: Penalty
}

/** Refusals within a time, after which the refused key is blocked. */
export interface Penalty {
  readonly refusals: number
  readonly withinMs: number
  readonly blockMs: number
}

export interface CostHeader {
  /** Lower case. */
  readonly header: string
  readonly min: number
  readonly max: number
  readonly fromAnyone: boolean
}

export interface CompiledLimit {
  readonly name: string
  /** Names of dimensions; several are one composite key. */
  readonly by: readonly string[]
  /** As it is written, such as `800/s`. */
  readonly text: string
  /** With what belongs to its algorithm, such as `10 held at once, ttl 1m`. */
  readonly words: string
  /** Of calendar windows: whose days and months. */
  readonly timeZone?: string
  /** undefined: unlimited. */
  readonly limit: Limit | undefined
  readonly overrides: readonly CompiledOverride[]
}

export interface CompiledOverride {
  /** A value, or a prefix with a final `*`. */
  readonly value: string
  readonly text: string
  readonly words: string
  /** undefined: unlimited. */
  readonly limit: Limit | undefined
}

export interface Explanation {
  /** What the rules say in the end. */
  readonly match: RuleMatch
  /** One entry for each rule, in the order of the file. */
  readonly rules: readonly RuleExplanation[]
}

export interface RuleExplanation {
  readonly rule: string
  readonly kind: CompiledRule['kind']
  readonly matched: boolean
  /** Why, or why not. */
  readonly why: string
  /** The path pattern that matched, where the rule has any. */
  readonly pattern?: string
  /** Units that the request takes; absent where the rule did not match. */
  readonly cost?: number
  /** Why a field of the request did not say the cost, where it may. */
  readonly note?: string
  /** Empty where the rule did not match. */
  readonly limits: readonly LimitExplanation[]
}

export interface LimitExplanation {
  readonly name: string
  readonly by: readonly string[]
  /** What is judged; absent where the limit does not apply to this request. */
  readonly item?: CheckItem
  /** The counter's key without the store's prefix. */
  readonly key?: string
  /** Where the numbers or the counter are not the usual: an override, a missing value. */
  readonly note?: string
}
