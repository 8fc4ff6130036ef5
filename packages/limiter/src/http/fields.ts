import type { Decision, LimitStatus } from '../decision.ts'
import type { MatchedRule } from '../rule-set.ts'
import { fullName, sharedNames } from './policy-name.ts'

export type Field = [name: string, value: string]

/**
 * The names of all fields that {@link rateLimitFields} may give, in lower case: what to expose across
 * origins, and what of an upstream's answer gives way. `retry-after` is not of them: an upstream's own
 * is about something else.
 */
export const RATE_LIMIT_FIELDS: readonly string[] = [
  'ratelimit-policy',
  'ratelimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]

/** The largest integer that a structured field carries (RFC 9651, 3.3.1). */
const MAX_INTEGER = 999_999_999_999_999

/** A store's clock that differs more from this machine's is not told to clients. */
const MAX_SKEW_MS = 1000

/** What the policy field says of a limit, kept with its rule: overrides of one name differ in numbers. */
interface PolicyText {
  limit: number
  capacity: number
  periodMs: number | undefined
  /** `;q=5;w=1` */
  parameters: string
  /** `"user"` */
  readonly short: string
  /** `"rule/user"` */
  readonly full: string
}

const texts = new WeakMap<MatchedRule, Map<string, PolicyText>>()

/**
 * The fields of an answer: `RateLimit-Policy` and `RateLimit` (structured fields, one item for each
 * shown limit), `X-RateLimit-*` where a rule asks for them, and `Retry-After` on a refusal.
 *
 * - `q` = the most units at once or a period, whichever is more; `w` = the period in seconds, rounded
 *   up, left out below 1 s; `r` = whole units left; `t` = whole seconds, rounded up, until there is more
 *   (of a limit that refused: until it would admit), left out when nothing is used or it never will.
 * - `Retry-After` is in whole seconds, rounded up, at least 1, and never below a refusing `t`. It does
 *   not depend on `headers`. It is left out where waiting cannot help.
 * - `X-RateLimit-Reset` is the instant, in seconds since the Unix epoch, rounded up, at which the budget
 *   is as if unused: of the limit that refused, else of the one with the least left. It is never in the
 *   past, also where the store's clock is wrong.
 *
 * @param rules the rules that matched; the limits of a rule that is not among them are not shown
 * @param nowMs this machine's wall clock
 */
export function rateLimitFields(
  decision: Decision,
  rules: readonly MatchedRule[],
  nowMs: () => number = Date.now,
): Field[] {
  const fields: Field[] = []
  let legacy: LimitStatus | undefined
  let policies = ''
  let states = ''
  const shared = rules.length > 1 ? sharedNames(decision.limits) : undefined
  for (const status of decision.limits) {
    const rule = ruleOf(status, rules)
    if (rule === undefined || rule.headers === 'off' || !isShown(status, rule)) continue
    if (rule.headers !== 'standard' && (legacy === undefined || isTighter(status, legacy))) legacy = status
    if (rule.headers === 'legacy') continue
    const text = textOf(status, rule)
    const name = shared?.has(status.name) ? text.full : text.short
    const comma = states === '' ? '' : ', '
    policies += comma + name + text.parameters
    states += comma + name + stateParameters(status)
  }
  if (states !== '') fields.push(['RateLimit-Policy', policies], ['RateLimit', states])
  if (legacy) pushLegacy(fields, legacy, decision.at, nowMs())
  const wait = retryAfterSeconds(decision)
  if (wait !== undefined) fields.push(['Retry-After', String(wait)])
  return fields
}

/** Whole seconds for `Retry-After`; undefined where the decision admits, or where waiting cannot help. */
export function retryAfterSeconds(decision: Decision): number | undefined {
  if (decision.allowed || !Number.isFinite(decision.retryAfterMs)) return undefined
  return Math.max(1, seconds(decision.retryAfterMs))
}

function ruleOf(status: LimitStatus, rules: readonly MatchedRule[]): MatchedRule | undefined {
  // Limits that belong to no rule are those of a limiter, which is its only "rule".
  if (status.rule === undefined) return rules.length === 1 ? rules[0] : undefined
  for (const rule of rules) if (rule.name === status.rule) return rule
  return undefined
}

function isShown(status: LimitStatus, rule: MatchedRule): boolean {
  return rule.disclose || status.retryAfterMs > 0 || !rule.globalLimits.includes(status.name)
}

function stateParameters(status: LimitStatus): string {
  const refused = status.retryAfterMs > 0 && Number.isFinite(status.retryAfterMs)
  const wait = refused ? status.retryAfterMs : status.nextMs
  const remaining = `;r=${integer(Math.floor(status.remaining))}`
  return wait > 0 && Number.isFinite(wait) ? `${remaining};t=${seconds(wait)}` : remaining
}

function textOf(status: LimitStatus, rule: MatchedRule): PolicyText {
  const ofRule = texts.get(rule) ?? new Map<string, PolicyText>()
  if (ofRule.size === 0) texts.set(rule, ofRule)
  let text = ofRule.get(status.name)
  if (!text) {
    const [short, full] = [quoted(status.name), quoted(status.rule === undefined ? status.name : fullName(status))]
    text = { limit: -1, capacity: -1, periodMs: undefined, parameters: '', short, full }
    ofRule.set(status.name, text)
  }
  if (text.limit !== status.limit || text.capacity !== status.capacity || text.periodMs !== status.periodMs) {
    text.limit = status.limit
    text.capacity = status.capacity
    text.periodMs = status.periodMs
    text.parameters = policyParameters(status)
  }
  return text
}

function policyParameters({ limit, capacity, periodMs }: LimitStatus): string {
  const q = `;q=${integer(Math.max(limit, capacity))}`
  return periodMs !== undefined && periodMs >= 1000 ? `${q};w=${seconds(periodMs)}` : q
}

/** Whether the first says more about what a caller may do next: refusals first, the longest wait first. */
function isTighter(a: LimitStatus, b: LimitStatus): boolean {
  if (a.retryAfterMs > 0 || b.retryAfterMs > 0) return a.retryAfterMs > b.retryAfterMs
  return a.remaining * b.capacity < b.remaining * a.capacity
}

function pushLegacy(fields: Field[], status: LimitStatus, atMs: number, nowMs: number): void {
  const resetMs = Number.isFinite(status.resetAfterMs) ? status.resetAfterMs : 0
  // The store's own instant, so that a window that ends on the minute is said to.
  const fromMs = Math.abs(nowMs - atMs) < MAX_SKEW_MS ? atMs : nowMs
  fields.push(
    ['X-RateLimit-Limit', String(integer(Math.max(status.limit, status.capacity)))],
    ['X-RateLimit-Remaining', String(integer(Math.floor(status.remaining)))],
    ['X-RateLimit-Reset', String(seconds(Math.max(fromMs + resetMs, nowMs)))],
  )
}

/** Rounded up: a caller who waits as long as it is told must be let in. */
function seconds(ms: number): number {
  return integer(Math.ceil(ms / 1000))
}

function integer(value: number): number {
  return value > 0 ? Math.min(value, MAX_INTEGER) : 0
}

/** A string of a structured field: printable ASCII in quotes; names hold no more, other text is escaped. */
function quoted(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]/gu, (char) => encodeURIComponent(char.toWellFormed()))
  return `"${ascii.replace(/["\\]/g, '\\$&')}"`
}
