import type { Explanation, LimitExplanation, RuleExplanation, RuleFile } from '@headgate/rules'
import type { LimitStatus } from 'headgate'
import { type Written, writtenOf } from '../limit-text.ts'
import type { Budgets } from '../store-view.ts'

/** A limit that a request meets, with its numbers where they are known. */
export interface JudgedLimit extends LimitExplanation {
  readonly status?: LimitStatus
  /** What the file says of it; absent where it does not apply. */
  readonly written?: Written
  /** The counter as the store calls it; absent where there is none. */
  readonly storeKey?: string
}

export interface Judged extends RuleExplanation {
  readonly limits: readonly JudgedLimit[]
}

/** Puts beside each limit what the store says of it. Numbers are absent where no limit was judged. */
export function judgedRules(explanation: Explanation, file: RuleFile, budgets: Budgets | undefined): Judged[] {
  const statuses = new Map(budgets?.decision.limits.map((status) => [`${status.rule}:${status.name}`, status]))
  return explanation.rules.map((rule) => ({
    ...rule,
    limits: rule.limits.map((limit) => {
      const status = statuses.get(`${rule.rule}:${limit.name}`)
      return {
        ...limit,
        ...(limit.item === undefined ? {} : { written: writtenOf(file, limit.item) }),
        ...(status === undefined ? {} : { status }),
        ...(limit.key === undefined ? {} : { storeKey: `${file.prefix}:${limit.key}` }),
      }
    }),
  }))
}
