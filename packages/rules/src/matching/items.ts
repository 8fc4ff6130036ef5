import { type CheckItem, EncodedKey } from 'headgate'
import type { Facts } from '../dimensions/dimension.ts'
import type { Pattern } from '../paths/pattern.ts'
import type { CompiledRule } from '../rule-file.ts'
import { type LimitPlan, type OverrideTable, overrideFor } from './plan.ts'

/** What becomes of a limit for one request. */
export type Applied =
  | CheckItem
  /** A dimension has no value, and its requests are refused then: its name. */
  | { readonly missing: string }
  /** The limit does not apply: unlimited, or dropped. */
  | undefined

const NO_VALUE = new EncodedKey('')

/** The limit's part in a request's check. */
export function apply(
  plan: LimitPlan,
  rule: CompiledRule,
  facts: Facts,
  pattern: Pattern | undefined,
  cost: number,
): Applied {
  const { by } = plan
  const first = by[0]
  if (first === undefined) return undefined
  if (by.length > 1) return applyComposite(plan, rule, facts, pattern, cost)
  const value = facts.value(first, pattern)
  if (value === undefined) {
    if (first.missing === 'skip') return undefined
    if (first.missing === 'deny') return { missing: first.name }
    return item(plan, rule, plan.limit.limit, new EncodedKey(facts.addressRoom), cost)
  }
  const limit = plan.overrides === undefined ? plan.limit.limit : limitFor(plan, plan.overrides, value)
  const text = facts.text(first, value)
  return item(plan, rule, limit, text === '' ? NO_VALUE : new EncodedKey(text), cost)
}

function applyComposite(
  plan: LimitPlan,
  rule: CompiledRule,
  facts: Facts,
  pattern: Pattern | undefined,
  cost: number,
): Applied {
  let key = ''
  let separator = ''
  for (const dimension of plan.by) {
    const value = facts.value(dimension, pattern)
    if (value === undefined && dimension.missing === 'skip') return undefined
    if (value === undefined && dimension.missing === 'deny') return { missing: dimension.name }
    key += separator + (value === undefined ? facts.addressRoom : facts.text(dimension, value))
    separator = ':'
  }
  return item(plan, rule, plan.limit.limit, new EncodedKey(key), cost)
}

/** The numbers for a value of a limit by one dimension; undefined: unlimited. */
export function limitFor(plan: LimitPlan, overrides: OverrideTable, value: string): CheckItem['limit'] | undefined {
  const override = overrideFor(overrides, value)
  return override === undefined ? plan.limit.limit : override.limit
}

export function item(
  plan: LimitPlan,
  rule: CompiledRule,
  limit: CheckItem['limit'] | undefined,
  key: EncodedKey,
  cost: number,
): CheckItem | undefined {
  if (limit === undefined) return undefined
  const { onStoreFailure, accuracy } = rule
  const { name } = plan.limit
  const enforced = rule.mode !== 'shadow'
  const penalty = enforced ? rule.penalty : undefined
  const maxWaitMs = enforced && (rule.maxWaitMs > 0 || penalty !== undefined) ? rule.maxWaitMs : undefined
  const group = enforced ? 'enforced' : 'shadow'
  // All of one shape, made at once: there is one of them for each limit of each request, and spreading takes µs.
  return { rule: rule.name, name, limit, key, cost, onStoreFailure, accuracy, group, penalty, maxWaitMs }
}
