import type { Explanation, RuleFile } from '@headgate/rules'
import type { Decision, RuleRequest } from 'headgate'
import { refusalStatus } from 'headgate/http'
import { refusalText } from '../refusal-text.ts'
import { type Budgets, withStore } from '../store-view.ts'

/** What would happen to a request. */
export interface Verdict {
  readonly allowed: boolean
  /** The status of our own answer; absent where the request would be forwarded. */
  readonly status?: number
  /** One sentence without its full stop. */
  readonly why: string
  /** Present where limits were judged. */
  readonly decision?: Decision
}

/** A verdict before any limit is asked; undefined: the limits decide. */
export function verdictOfRules({ match }: Explanation, file: RuleFile, request: RuleRequest): Verdict | undefined {
  if (match.outcome === 'deny') return { allowed: false, status: 403, why: `${match.rule} denies it` }
  if (match.outcome === 'missing') {
    return {
      allowed: false,
      status: 400,
      why: `${match.rule} needs ${match.dimension}, which the request does not carry`,
    }
  }
  if (match.outcome === 'allow') return passing(`${match.rule} allows it, whatever the limits`, file, request)
  return match.items.length === 0 ? passing('no limit applies', file, request) : undefined
}

/** The budgets that the request meets. @throws HeadgateError with HEADGATE_STORE_UNAVAILABLE */
export async function budgetsOf({ match }: Explanation, file: RuleFile): Promise<Budgets | undefined> {
  if (match.outcome !== 'check' || match.items.length === 0) return undefined
  return withStore(file, (store) => store.peek(match.items))
}

/** What the limits decide. */
export function verdictOfLimits(decision: Decision, file: RuleFile, request: RuleRequest): Verdict {
  if (decision.allowed) return { ...passing('all limits admit it', file, request), decision }
  return { allowed: false, status: refusalStatus(decision), why: refusalText(decision), decision }
}

function passing(why: string, file: RuleFile, request: RuleRequest): Verdict {
  if (file.gateway === undefined || request.route !== undefined) return { allowed: true, why }
  return { allowed: true, status: 404, why: `${why}, but no route leads from ${request.path}` }
}
