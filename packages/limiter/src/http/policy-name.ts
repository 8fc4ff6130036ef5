import type { LimitStatus } from '../decision.ts'

/**
 * What an answer calls each limit of a decision: by its name, or `rule/name` where limits of two
 * rules share one. All limits of the decision count, also those that the answer does not show, so
 * that one request's answers call a limit the same whether it refused or not.
 */
export function policyNames(limits: readonly LimitStatus[]): (status: LimitStatus) => string {
  const shared = sharedNames(limits)
  return (status) => (shared.has(status.name) && status.rule !== undefined ? fullName(status) : status.name)
}

/** The names that limits of two rules have. */
export function sharedNames(limits: readonly LimitStatus[]): ReadonlySet<string> {
  const first = limits[0]
  if (limits.every((status) => status.rule === first?.rule)) return NONE
  const rules = new Map<string, string | undefined>()
  const shared = new Set<string>()
  for (const { name, rule } of limits) {
    if (!rules.has(name)) rules.set(name, rule)
    else if (rules.get(name) !== rule) shared.add(name)
  }
  return shared
}

const NONE: ReadonlySet<string> = new Set()

export function fullName(status: LimitStatus): string {
  return `${status.rule}/${status.name}`
}
