import type { Explanation, LimitExplanation, RuleExplanation } from '@headgate/rules'
import type { LimitStatus } from 'headgate'
import type { Budgets } from '../store-view.ts'

/** A limit that a request meets, with its numbers where they are known. */
export interface JudgedLimit extends LimitExplanation {
  readonly status?: LimitStatus
  /** The counter as the store calls it; absent where there is none. */
  readonly storeKey?: string
}

export interface Judged extends RuleExplanation {
  readonly limits: readonly JudgedLimit[]
}

/** Puts beside each limit what the store says of it. Numbers are absent where no limit was judged. */
export function judgedRules(explanation: Explanation, prefix: string, budgets: Budgets | undefined): Judged[] {
  const statuses = new Map(budgets?.decision.limits.map((status) => [`${status.rule}:${status.name}`, status]))
  return explanation.rules.map((rule) => ({
    ...rule,
    limits: rule.limits.map((limit) => {
      const status = statuses.get(`${rule.rule}:${limit.name}`)
      return {
        ...limit,
        ...(status === undefined ? {} : { status }),
        ...(limit.key === undefined ? {} : { storeKey: `${prefix}:${limit.key}` }),
      }
    }),
  }))
}
