import type { Decision, LimitStatus, MatchedRule, Source } from 'headgate'

/**
 * What became of a matched rule. `shadow_limited`, `candidate_limited`: it would have refused, if it were enforced;
 * `overflow`: it let by what had waited in vain.
 */
export const OUTCOMES = [
  'allowed',
  'limited',
  'denied',
  'error',
  'shadow_limited',
  'candidate_limited',
  'overflow',
] as const
export type RuleOutcome = (typeof OUTCOMES)[number]

const SOURCES = ['store', 'lease', 'deny-cache', 'local', 'policy'] as const satisfies readonly Source[]
const SOURCE_INDEX = Object.fromEntries(SOURCES.map((source, i) => [source, i])) as Record<Source, number>

/** What a rule or a limit counts as that the rule file does not name. */
const OTHER = 'other'

/** The part of a rule file that metrics need. */
export interface NamedRule {
  readonly name: string
  readonly limits: readonly { readonly name: string }[]
}

export interface DecisionCount {
  readonly rule: string
  /** The limit that refused; empty where none did. */
  readonly limit: string
  readonly outcome: RuleOutcome
  readonly source: Source
  readonly count: number
}

/** What is left of a limit that all callers share, as last seen. */
interface Seen {
  status: LimitStatus
  /** On `performance.now()`. */
  atMs: number
}

/** One rule's counts: for each limit, one number for each outcome and source. */
class RuleCounts {
  readonly byLimit = new Map<string, Float64Array>()
  readonly global = new Map<string, Seen>()

  constructor(limits: readonly string[]) {
    for (const limit of ['', ...limits, OTHER]) {
      this.byLimit.set(limit, new Float64Array(OUTCOMES.length * SOURCES.length))
    }
  }

  add(limit: string, outcome: number, source: Source): void {
    const counts = (this.byLimit.get(limit) ?? this.byLimit.get(OTHER)) as Float64Array
    const i = outcome * SOURCES.length + SOURCE_INDEX[source]
    counts[i] = (counts[i] as number) + 1
  }
}

const ALLOWED = OUTCOMES.indexOf('allowed')
const LIMITED = OUTCOMES.indexOf('limited')
const DENIED = OUTCOMES.indexOf('denied')
const ERROR = OUTCOMES.indexOf('error')
const OVERFLOW = OUTCOMES.indexOf('overflow')
const BESIDE = { shadow: OUTCOMES.indexOf('shadow_limited'), candidate: OUTCOMES.indexOf('candidate_limited') }

/**
 * Decisions counted by rule and limit, in plain numbers. Only names of the rule file become labels, so
 * callers, whatever their keys, never add a series.
 */
export class DecisionCounts {
  #rules = new Map<string, RuleCounts>()
  readonly #other = new RuleCounts([])

  /** Counts for these rules from now on. Rules that stay keep their counts; those that left lose their series. */
  apply(rules: readonly NamedRule[]): void {
    const before = this.#rules
    this.#rules = new Map()
    for (const { name, limits } of rules) {
      const names = limits.map((limit) => limit.name)
      const known = before.get(name)
      const same = known && known.byLimit.size === names.length + 2 && names.every((limit) => known.byLimit.has(limit))
      this.#rules.set(name, same ? known : mended(names, known))
    }
  }

  /** Once a request: every rule that matched counts, by its own refuser if it has one. */
  decided(decision: Decision, rules: readonly MatchedRule[]): void {
    for (const rule of rules) {
      const counts = this.#rules.get(rule.name) ?? this.#other
      if (rule.shadow !== true) this.#enforced(counts, rule.name, decision)
      if (decision.beside !== undefined) this.#beside(counts, rule, decision)
      if (rule.globalLimits.length > 0) this.#see(counts, rule, decision)
    }
  }

  /** A rule that answered without a check: a list, or a dimension that a request lacks. */
  listed(rule: string, outcome: 'allowed' | 'denied' | 'error'): void {
    const counts = this.#rules.get(rule) ?? this.#other
    counts.add('', OUTCOMES.indexOf(outcome), 'policy')
  }

  /** Every count that is not zero, and the two that each rule and limit begins with. */
  *counts(): Iterable<DecisionCount> {
    for (const [rule, counts] of this.#rules) yield* countsOf(rule, counts, true)
    yield* countsOf(OTHER, this.#other, false)
  }

  /** The share that is left of each global limit that was judged, from 0 to 1. */
  *remaining(): Iterable<{ readonly rule: string; readonly limit: string; readonly ratio: number }> {
    const nowMs = performance.now()
    for (const [rule, counts] of this.#rules) {
      for (const [limit, { status, atMs }] of counts.global) {
        const refilled = nowMs - atMs >= status.resetAfterMs
        const ratio = status.capacity === 0 ? 0 : refilled ? 1 : status.remaining / status.capacity
        yield { rule, limit, ratio }
      }
    }
  }

  #enforced(counts: RuleCounts, rule: string, decision: Decision): void {
    if (!decision.allowed) this.#refused(counts, rule, decision)
    else if (decision.reason !== undefined && decision.rule === rule) {
      counts.add(decision.limitedBy ?? '', OVERFLOW, decision.source)
    } else counts.add('', ALLOWED, decision.source)
  }

  /** A candidate counts beside its live rule, and only where it would have refused. */
  #beside(counts: RuleCounts, rule: MatchedRule, { beside, source }: Decision): void {
    for (const { kind, rule: owner, allowed, limitedBy = '' } of beside ?? []) {
      if (owner !== rule.name) continue
      if (!allowed) counts.add(limitedBy, BESIDE[kind], source)
      else if (kind === 'shadow') counts.add('', ALLOWED, source)
    }
  }

  #refused(counts: RuleCounts, rule: string, decision: Decision): void {
    const refuser = refuserOf(rule, decision)
    if (refuser === undefined) counts.add('', ALLOWED, decision.source)
    else counts.add(refuser, outcomeOf(decision), decision.source)
  }

  #see(counts: RuleCounts, rule: MatchedRule, decision: Decision): void {
    const atMs = performance.now()
    for (const status of decision.limits) {
      if (status.rule !== rule.name || !rule.globalLimits.includes(status.name)) continue
      const seen = counts.global.get(status.name)
      if (seen) {
        seen.status = status
        seen.atMs = atMs
      } else if (counts.byLimit.has(status.name)) counts.global.set(status.name, { status, atMs })
    }
  }
}

/** Limits of a rule changed: what still has its name keeps its counts. */
function mended(limits: readonly string[], before: RuleCounts | undefined): RuleCounts {
  const counts = new RuleCounts(limits)
  for (const [limit, numbers] of before?.byLimit ?? []) counts.byLimit.get(limit)?.set(numbers)
  return counts
}

/** The limit by which a rule refused: of several, the one with the longest wait. */
function refuserOf(rule: string, decision: Decision): string | undefined {
  let refuser: LimitStatus | undefined
  for (const status of decision.limits) {
    if (status.rule !== rule || status.retryAfterMs === 0) continue
    if (refuser === undefined || status.retryAfterMs > refuser.retryAfterMs) refuser = status
  }
  if (refuser) return refuser.name
  return decision.rule === rule ? (decision.limitedBy ?? '') : undefined
}

function outcomeOf({ reason }: Decision): number {
  if (reason === 'store') return ERROR
  return reason === 'list' ? DENIED : LIMITED
}

function* countsOf(rule: string, { byLimit }: RuleCounts, startsAtZero: boolean): Iterable<DecisionCount> {
  for (const [limit, numbers] of byLimit) {
    // A series that is there from the start shows its first increase too.
    const first = startsAtZero && limit !== OTHER ? (limit === '' ? ALLOWED : LIMITED) * SOURCES.length : -1
    for (const [i, count] of numbers.entries()) {
      if (count === 0 && i !== first) continue
      const outcome = OUTCOMES[Math.floor(i / SOURCES.length)] as RuleOutcome
      yield { rule, limit, outcome, source: SOURCES[i % SOURCES.length] as Source, count }
    }
  }
}
