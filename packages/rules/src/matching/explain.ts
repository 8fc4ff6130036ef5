import type { CheckItem, RuleRequest } from 'headgate'
import { Facts } from '../dimensions/dimension.ts'
import type { CompiledRule, Explanation, LimitExplanation, RuleExplanation } from '../rule-file.ts'
import { costNote, costOf } from './cost.ts'
import { apply } from './items.ts'
import type { Hit, Matcher } from './matcher.ts'
import { type LimitPlan, overrideFor, type RulePlan } from './plan.ts'

/** Says of every rule whether it matches a request, and what would be judged. */
export function explain(
  rules: readonly CompiledRule[],
  plans: readonly RulePlan[],
  matcher: Matcher,
  request: RuleRequest,
): Explanation {
  const facts = new Facts(request)
  const matching = new Map(matcher.matching(request).map((hit) => [hit.plan.rule, hit]))
  const onPath = new Map(matcher.onPath(request.path).map((hit) => [hit.plan.rule, hit]))
  const planOf = new Map(plans.map((plan) => [plan.rule, plan]))
  return {
    match: matcher.match(request),
    rules: rules.map((rule) => {
      const hit = matching.get(rule)
      if (hit) return explainMatch(hit, facts)
      const why = whyNot(planOf.get(rule), onPath.has(rule), request)
      return { rule: rule.name, kind: rule.kind, matched: false, why, limits: [] }
    }),
  }
}

function whyNot(plan: RulePlan | undefined, onPath: boolean, request: RuleRequest): string {
  if (plan === undefined) return 'its mode is off'
  if (!onPath) return `the path is none of ${plan.patterns.map(({ text }) => text).join(', ')}`
  return (
    plan.conditions.find((condition) => !condition.test(request))?.why ??
    'another rule matches, and this is for the others'
  )
}

function explainMatch({ plan, pattern }: Hit, facts: Facts): RuleExplanation {
  const { rule } = plan
  const cost = costOf(rule.cost, facts.request)
  const note = rule.kind === 'limits' ? costNote(rule.cost, facts.request) : undefined
  return {
    rule: rule.name,
    kind: rule.kind,
    matched: true,
    why: rule.match,
    ...(pattern === undefined ? {} : { pattern: pattern.text }),
    ...(rule.kind === 'limits' ? { cost } : {}),
    ...(note === undefined ? {} : { note }),
    limits: plan.limits.map((limit) => {
      const applied = apply(limit, rule, facts, pattern, cost)
      const item: CheckItem | undefined = applied !== undefined && 'limit' in applied ? applied : undefined
      return explainLimit(limit, rule, facts, pattern, item)
    }),
  }
}

function explainLimit(
  plan: LimitPlan,
  rule: CompiledRule,
  facts: Facts,
  pattern: Hit['pattern'],
  item: CheckItem | undefined,
): LimitExplanation {
  const { name, by } = plan.limit
  const note = noteOn(plan, facts, pattern)
  return {
    name,
    by,
    ...(item === undefined ? {} : { item, key: `${rule.name}:${name}:${keyText(item.key)}` }),
    ...(note === undefined ? {} : { note }),
  }
}

function keyText(key: CheckItem['key']): string {
  return typeof key === 'object' && 'text' in key ? key.text : String(key)
}

function noteOn(plan: LimitPlan, facts: Facts, pattern: Hit['pattern']): string | undefined {
  for (const dimension of plan.by) {
    if (facts.value(dimension, pattern) !== undefined) continue
    if (dimension.missing === 'skip')
      return `${dimension.name} is missing (${dimension.origin}), so the limit is dropped`
    if (dimension.missing === 'deny')
      return `${dimension.name} is missing (${dimension.origin}), so the request is refused with 400`
    return `${dimension.name} is missing (${dimension.origin}), so it is counted by address`
  }
  const first = plan.by[0]
  const value = first && plan.overrides ? facts.value(first, pattern) : undefined
  const override = value === undefined || !plan.overrides ? undefined : overrideFor(plan.overrides, value)
  if (override) return `override ${override.written}${override.limit ? '' : ': unlimited'}`
  return plan.limit.limit === undefined ? 'unlimited' : undefined
}
