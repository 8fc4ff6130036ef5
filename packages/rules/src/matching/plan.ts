import type { Limit, MatchedRule } from 'headgate'
import type { Dimension } from '../dimensions/dimension.ts'
import type { Pattern } from '../paths/pattern.ts'
import type { CompiledLimit, CompiledRule } from '../rule-file.ts'
import type { Condition } from './condition.ts'

/** A rule, ready to be matched. */
export interface RulePlan {
  readonly rule: CompiledRule
  readonly otherwise: boolean
  /** None: every path. */
  readonly patterns: readonly Pattern[]
  readonly conditions: readonly Condition[]
  readonly limits: readonly LimitPlan[]
  readonly candidate: readonly LimitPlan[]
  /** One object as long as the rules live. */
  readonly matched: MatchedRule
}

/** A limit, ready to be applied. */
export interface LimitPlan {
  readonly limit: CompiledLimit
  readonly by: readonly Dimension[]
  /** undefined: no numbers depend on the value. */
  readonly overrides: OverrideTable | undefined
}

/** Numbers for some values of one dimension; undefined stands for unlimited. */
export interface OverrideTable {
  readonly exact: ReadonlyMap<string, Override>
  /** The longest first. */
  readonly prefixes: readonly Override[]
}

export interface Override {
  /** The value, or the prefix without its `*`, in the dimension's own form. */
  readonly text: string
  /** As the file has it. */
  readonly written: string
  readonly limit: Limit | undefined
}

/** The override for a value: exact before longest prefix. */
export function overrideFor(table: OverrideTable, value: string): Override | undefined {
  const exact = table.exact.get(value)
  return exact ?? table.prefixes.find(({ text }) => value.startsWith(text))
}
