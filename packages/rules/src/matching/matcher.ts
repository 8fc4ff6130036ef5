import type { CheckItem, MatchedRule, RuleMatch, RuleRequest } from 'headgate'
import { Facts } from '../dimensions/dimension.ts'
import type { PathSettings } from '../paths/normalize.ts'
import { PathTrie } from '../paths/path-trie.ts'
import type { Pattern } from '../paths/pattern.ts'
import { costOf } from './cost.ts'
import { apply } from './items.ts'
import type { RulePlan } from './plan.ts'

/** A rule whose path fits, and by which pattern. */
export interface Hit {
  readonly plan: RulePlan
  /** undefined: the rule is for every path. */
  readonly pattern: Pattern | undefined
  /** Rules in the order of the file, then their patterns in theirs. */
  readonly order: number
}

const NOTHING: RuleMatch = { outcome: 'check', items: [], rules: [] }

/** Matches requests against the rules that are on. */
export class Matcher {
  private readonly trie: PathTrie<Hit>
  private readonly hasOtherwise: boolean

  constructor(plans: readonly RulePlan[], paths: PathSettings) {
    this.trie = new PathTrie(paths)
    this.hasOtherwise = plans.some((plan) => plan.otherwise)
    let order = 0
    for (const plan of plans) {
      if (plan.patterns.length === 0) this.trie.addEverywhere({ plan, pattern: undefined, order: order++ })
      for (const pattern of plan.patterns) this.trie.add(pattern, { plan, pattern, order: order++ })
    }
  }

  match(request: RuleRequest): RuleMatch {
    return judge(this.matching(request), request)
  }

  /** The rules that match a request, in the order of the file. */
  matching(request: RuleRequest): Hit[] {
    const hits = this.onPath(request.path)
    const matching: Hit[] = []
    for (const hit of hits) if (!hit.plan.otherwise && fulfils(hit.plan, request)) matching.push(hit)
    if (matching.length > 0 || !this.hasOtherwise) return matching
    for (const hit of hits) if (hit.plan.otherwise && fulfils(hit.plan, request)) matching.push(hit)
    return matching
  }

  /** The rules whose path fits, in the order of the file, each once. */
  onPath(path: string): Hit[] {
    const hits: Hit[] = []
    this.trie.find(path, hits)
    sort(hits)
    let kept = 0
    for (const hit of hits) {
      if (kept > 0 && hits[kept - 1]?.plan === hit.plan) continue
      hits[kept++] = hit
    }
    hits.length = kept
    return hits
  }
}

function fulfils(plan: RulePlan, request: RuleRequest): boolean {
  for (const condition of plan.conditions) if (!condition.test(request)) return false
  return true
}

/** There are few, and they come nearly in order. */
function sort(hits: Hit[]): void {
  for (let i = 1; i < hits.length; i++) {
    const hit = hits[i] as Hit
    let at = i
    while (at > 0 && (hits[at - 1] as Hit).order > hit.order) {
      hits[at] = hits[at - 1] as Hit
      at--
    }
    hits[at] = hit
  }
}

/** Deny beats allow beats limits; all limits of all matching rules are one check. */
function judge(hits: readonly Hit[], request: RuleRequest): RuleMatch {
  if (hits.length === 0) return NOTHING
  let allowed: RulePlan | undefined
  for (const { plan } of hits) {
    if (plan.rule.kind === 'deny') return { outcome: 'deny', rule: plan.rule.name }
    if (plan.rule.kind === 'allow') allowed ??= plan
  }
  if (allowed !== undefined) return { outcome: 'allow', rule: allowed.rule.name }
  const facts = new Facts(request)
  const items: CheckItem[] = []
  const rules: MatchedRule[] = []
  for (const { plan, pattern } of hits) {
    const cost = costOf(plan.rule.cost, request)
    for (const limit of plan.limits) {
      const applied = apply(limit, plan.rule, facts, pattern, cost)
      if (applied === undefined) continue
      if ('missing' in applied) return { outcome: 'missing', rule: plan.rule.name, dimension: applied.missing }
      items.push(applied)
    }
    for (const limit of plan.candidate) {
      const applied = apply(limit, plan.rule, facts, pattern, cost)
      if (applied !== undefined && !('missing' in applied))
        items.push({ ...applied, group: 'candidate', penalty: undefined, maxWaitMs: undefined })
    }
    rules.push(plan.matched)
  }
  return { outcome: 'check', items, rules }
}
