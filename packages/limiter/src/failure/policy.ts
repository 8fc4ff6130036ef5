import type { Decision } from '../decision.ts'
import { deriveDecision } from '../derive.ts'
import { StoreUnavailableError } from '../errors.ts'
import type { Limit } from '../limit.ts'
import type { Check, LocalStore, Part, Verdict } from '../store.ts'

/** What a refused caller is told to wait when nobody can say, in ms. */
const RETRY_MS = 1000

/** Decides without the store, by each limit's own policy; all must admit. */
export class Policy {
  private readonly local: LocalStore
  private readonly instances: number
  private readonly shares = new WeakMap<Limit, Limit>()

  /** @param local keeps this instance's share of every budget */
  constructor(local: LocalStore, instances: number) {
    this.local = local
    this.instances = instances
  }

  /** @throws StoreUnavailableError where a limit's owner asked for it */
  decide(check: Check, cause: unknown): Decision {
    const { parts } = check
    const impossible = parts.find(neverFits)
    if (impossible !== undefined) return refusal(impossible, 'never', Number.POSITIVE_INFINITY)
    if (parts.some((part) => part.onStoreFailure === 'throw')) throw unavailable(cause)
    const closed = parts.find((part) => part.onStoreFailure === 'closed')
    if (closed !== undefined) return refusal(closed, 'store', RETRY_MS)
    const shared = parts.filter((part) => part.onStoreFailure === 'local').map((part) => this.shareOf(part))
    return shared.length === 0 ? admission() : this.judgeShares({ ...check, parts: shared, followers: undefined })
  }

  private judgeShares(check: Check): Decision {
    const decision = deriveDecision(check, this.local.judge(check), 'local', true)
    if (decision.reason === 'never') tryLater(decision)
    return decision
  }

  /** What was decided here is settled here. */
  settle(check: Check): Verdict {
    return this.local.judge({ ...check, parts: check.parts.map((part) => this.shareOf(part)) })
  }

  private shareOf(part: Part): Part {
    let share = this.shares.get(part.limit)
    if (share === undefined) {
      share = part.limit.share(this.instances)
      this.shares.set(part.limit, share)
    }
    return { ...part, limit: share }
  }
}

/** A cost above the share alone is possible again once the store is back; the longest wait still leads. */
function tryLater(decision: Decision): void {
  decision.reason = 'limit'
  decision.retryAfterMs = RETRY_MS
  for (const status of decision.limits) {
    if (status.retryAfterMs === Number.POSITIVE_INFINITY) status.retryAfterMs = RETRY_MS
    if (status.retryAfterMs <= decision.retryAfterMs) continue
    decision.retryAfterMs = status.retryAfterMs
    decision.limitedBy = status.name
    if (status.rule !== undefined) decision.rule = status.rule
  }
}

function unavailable(cause: unknown): StoreUnavailableError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new StoreUnavailableError(`the store gave no decision: ${why}`, { cause })
}

function neverFits({ limit, cost }: Part): boolean {
  return limit.capacity === 0 || cost > limit.capacity
}

function refusal(part: Part, reason: 'never' | 'store', retryAfterMs: number): Decision {
  const decision: Decision = { ...admission(), allowed: false, reason, limitedBy: part.name, retryAfterMs }
  if (part.rule !== undefined) decision.rule = part.rule
  return decision
}

function admission(): Decision {
  return { allowed: true, retryAfterMs: 0, delayMs: 0, limits: [], at: Date.now(), source: 'policy', degraded: true }
}
