import type { Decision, LimitStatus, Source } from './decision.ts'
import type { Check, Verdict } from './store.ts'

/**
 * The decision that a verdict means. Stores return little: everything a caller is told beyond the
 * verdict itself is derived here, by the same limit objects that the verdict came from.
 */
export function deriveDecision(check: Check, verdict: Verdict, source: Source, degraded: boolean): Decision {
  const { allowed, nowUs, view } = verdict
  const limits: LimitStatus[] = []
  let at = verdict.at
  let refuser: LimitStatus | undefined
  for (const { limit, rule, name, cost } of check.parts) {
    const status = blank(rule, name)
    limit.tell(view, at, nowUs, allowed ? 0 : cost, status)
    if (
      !allowed &&
      !limit.admits(view, at, cost) &&
      (refuser === undefined || status.retryAfterMs > refuser.retryAfterMs)
    ) {
      refuser = status
    }
    limits.push(status)
    at += limit.viewSize
  }
  const decision: Decision = {
    allowed,
    retryAfterMs: refuser === undefined ? 0 : refuser.retryAfterMs,
    delayMs: 0,
    limits,
    at: nowUs / 1000,
    source,
    degraded,
  }
  if (refuser !== undefined) {
    decision.reason = refuser.retryAfterMs === Number.POSITIVE_INFINITY ? 'never' : 'limit'
    if (refuser.rule !== undefined) decision.rule = refuser.rule
    decision.limitedBy = refuser.name
  }
  return decision
}

/** All fields from the start, so that every status has one shape. */
function blank(rule: string | undefined, name: string): LimitStatus {
  return rule === undefined
    ? { name, limit: 0, capacity: 0, periodMs: 0, remaining: 0, retryAfterMs: 0, nextMs: 0, resetAfterMs: 0 }
    : { rule, name, limit: 0, capacity: 0, periodMs: 0, remaining: 0, retryAfterMs: 0, nextMs: 0, resetAfterMs: 0 }
}
