import type { BesideDecision, Decision, LimitStatus, Reason, Source } from './decision.ts'
import { type Charge, writeReceipt } from './receipt.ts'
import type { Check, Follower, Part, Verdict } from './store.ts'

/**
 * The decision that a verdict means. Stores return little: everything a caller is told beyond the
 * verdict itself is derived here, by the same limit objects that the verdict came from.
 */
export function deriveDecision(check: Check, verdict: Verdict, source: Source, degraded: boolean): Decided {
  const { allowed, nowUs, view, followers } = verdict
  const decision = new Decided(allowed, nowUs / 1000, source, degraded)
  const refuser = tellAll(check.parts, verdict, decision.limits)
  if (allowed) {
    let at = verdict.at
    for (const { limit, cost } of check.parts) {
      if (limit.delayUs !== undefined && cost > 0) {
        const delayUs = check.peek ? (limit.place?.(view, at, nowUs, cost) ?? 0) : limit.delayUs(view, at)
        if (delayUs / 1000 > decision.delayMs) decision.delayMs = delayUs / 1000
      }
      at += limit.viewSize
    }
    if (!check.peek) decision.charged(check, verdict)
  } else if (refuser !== undefined) {
    decision.refuse(refuser, verdict.result)
    if (check.operation?.name === 'reserve') awaitLapse(decision, verdict)
  }
  if (followers !== undefined) {
    const judged = check.followers as readonly Follower[]
    const beside = followers.flatMap((each, i) => besideOf(judged[i] as Follower, each) ?? [])
    if (beside.length > 0) decision.beside = beside
    if (!allowed && !check.peek) decision.punish(judged, followers)
  }
  return decision
}

/** A decision whose receipt is made only when somebody wants it: most are never read. */
export class Decided implements Decision {
  allowed: boolean
  retryAfterMs = 0
  delayMs = 0
  limits: LimitStatus[] = []
  at: number
  source: Source
  degraded: boolean
  declare reason?: Reason
  declare rule?: string
  declare limitedBy?: string
  declare waitedMs?: number
  declare beside?: readonly BesideDecision[]
  #parts: readonly Part[] | undefined
  #charges: readonly Charge[] = []
  #result = 0
  #punished: readonly Follower[] | undefined

  constructor(allowed: boolean, at: number, source: Source, degraded: boolean) {
    this.allowed = allowed
    this.at = at
    this.source = source
    this.degraded = degraded
  }

  get receipt(): string | undefined {
    if (this.#parts === undefined) return undefined
    return writeReceipt(this.source === 'local' ? 'local' : 'store', this.#parts, this.#charges)
  }

  charged({ parts, operation }: Check, { view, at: from, nowUs, result }: Verdict): void {
    this.#result = result
    // What is held is settled by its reservation.
    if (operation?.name === 'reserve') return
    const charges: Charge[] = []
    let at = from
    for (const { limit, cost } of parts) {
      const units = operation?.name === 'take-up-to' ? result : cost
      charges.push({ cost: units, chargedUs: nowUs, instantUs: limit.receiptUs(view, at, nowUs) })
      at += limit.viewSize
    }
    this.#parts = parts
    this.#charges = charges
  }

  /** What was charged, in the order of the parts; empty where nothing was. */
  static chargesOf(decision: Decision): readonly Charge[] {
    return #charges in decision ? decision.#charges : []
  }

  /** One decision of the parts of a check that were decided apart, `first` before `second`. */
  static join(
    { parts, operation }: Check,
    first: Decided,
    second: Decision,
    ofFirst: (part: Part) => boolean,
  ): Decision {
    const refused = [first, second].filter(({ allowed }) => !allowed)
    const worst = refused.reduce<Decision | undefined>(
      (worst, each) => (worst === undefined || each.retryAfterMs > worst.retryAfterMs ? each : worst),
      undefined,
    )
    const joined = new Decided(worst === undefined, second.at, second.source, second.degraded)
    const granted = Decided.resultOf(second) ?? first.#result
    const limits = { first: first.limits.values(), second: second.limits.values() }
    const charges = { first: first.#charges.values(), second: Decided.chargesOf(second).values() }
    const ofSecond = #parts in second ? [...(second.#parts ?? [])] : []
    const inOrder: Charge[] = []
    const taken = operation?.name === 'take-up-to'
    for (const part of parts) {
      const side = ofFirst(part) ? 'first' : 'second'
      const status = limits[side].next()
      if (!status.done) joined.limits.push(status.value)
      // What only a policy let pass was not charged.
      const isCharged = side === 'first' || (ofSecond[0]?.space === part.space && ofSecond[0].value === part.value)
      if (side === 'second' && isCharged) ofSecond.shift()
      const charge: Charge = (isCharged && charges[side].next().value) || { cost: 0, chargedUs: 0, instantUs: 0 }
      inOrder.push(taken && charge.cost > 0 ? { ...charge, cost: granted } : charge)
    }
    joined.retryAfterMs = worst?.retryAfterMs ?? 0
    joined.delayMs = Math.max(first.delayMs, second.delayMs)
    if (worst?.reason !== undefined) joined.reason = worst.reason
    if (worst?.rule !== undefined) joined.rule = worst.rule
    if (worst?.limitedBy !== undefined) joined.limitedBy = worst.limitedBy
    if (second.beside !== undefined) joined.beside = second.beside
    if (joined.allowed && operation?.name !== 'reserve') {
      joined.#parts = parts
      joined.#charges = inOrder
    }
    joined.#result = granted
    // Who waits with a ticket does so in the store that refused.
    if (operation?.name === 'book' && !joined.allowed) {
      joined.#result = Math.max(0, ...refused.map((each) => Decided.resultOf(each) ?? 0))
    }
    // Of places in line the latest counts; each is by the clock of its own store.
    if (operation?.name === 'book' && joined.allowed) {
      const waits = [first.#result - first.at * 1000, (Decided.resultOf(second) ?? 0) - second.at * 1000]
      joined.#result = Math.round(second.at * 1000 + Math.max(0, ...waits))
    }
    return joined
  }

  /** The refusal may have been the last one that a penalty lets go by. */
  punish(followers: readonly Follower[], verdicts: readonly Verdict[]): void {
    verdicts.forEach(({ view, at }, i) => {
      const { kind, parts, places } = followers[i] as Follower
      const refused = places.some((place) => (this.limits[place]?.retryAfterMs ?? 0) > 0)
      if (kind !== 'penalty' || !refused || parts[0]?.limit.room(view, at) !== 0) return
      this.#punished = [...(this.#punished ?? []), followers[i] as Follower]
    })
  }

  /** The penalties that are due now. */
  static punishedBy(decision: Decision): readonly Follower[] | undefined {
    return #punished in decision ? decision.#punished : undefined
  }

  /** What an operation left; undefined: the decision is no store's. */
  static resultOf(decision: Decision): number | undefined {
    return #result in decision ? decision.#result : undefined
  }

  refuse({ status, reason }: Refuser, result: number): void {
    this.#result = result
    this.retryAfterMs = status.retryAfterMs
    this.reason = reason
    if (status.rule !== undefined) this.rule = status.rule
    this.limitedBy = status.name
  }
}

/** What an admitted operation left (see the script's `operations.lua`); undefined: no store decided. */
export const resultOf = Decided.resultOf

export const joinDecisions = Decided.join

export const punishedBy = Decided.punishedBy

export const chargesOf = Decided.chargesOf

interface Refuser {
  readonly status: LimitStatus
  readonly reason: Reason
}

/** Fills in what each limit says. @returns of those that refuse, the one with the longest wait */
function tellAll(parts: readonly Part[], verdict: Verdict, limits: LimitStatus[]): Refuser | undefined {
  const { allowed, nowUs, view, blockedPart, blockedUs } = verdict
  let at = verdict.at
  let refuser: LimitStatus | undefined
  let blocked = false
  for (let p = 0; p < parts.length; p++) {
    const { limit, rule, name, cost } = parts[p] as Part
    const status = blank(rule, name)
    limit.tell(view, at, nowUs, allowed ? 0 : cost, status)
    const isBlocked = p === blockedPart
    if (isBlocked) {
      status.blocked = true
      status.retryAfterMs = Math.max(status.retryAfterMs, (blockedUs - nowUs) / 1000)
    }
    if (
      !allowed &&
      (isBlocked || !limit.admits(view, at, cost)) &&
      (refuser === undefined || status.retryAfterMs > refuser.retryAfterMs)
    ) {
      refuser = status
      blocked = isBlocked && status.retryAfterMs === (blockedUs - nowUs) / 1000
    }
    limits.push(status)
    at += limit.viewSize
  }
  if (refuser === undefined) return allowed ? undefined : longestPlace(parts, verdict, limits)
  const reason = blocked ? 'blocked' : refuser.retryAfterMs === Number.POSITIVE_INFINITY ? 'never' : 'limit'
  return { status: refuser, reason }
}

/** Too much is held under a key already: until the first of it lapses. */
function awaitLapse(decision: Decided, { result, nowUs }: Verdict): void {
  const waitMs = result > 1 ? (result - nowUs) / 1000 : 0
  if (waitMs > decision.retryAfterMs) decision.retryAfterMs = waitMs
}

/** Nobody refuses the cost, but the place in line comes too late: the one with the longest line. */
function longestPlace(parts: readonly Part[], verdict: Verdict, limits: readonly LimitStatus[]): Refuser | undefined {
  let longest: LimitStatus | undefined
  let at = verdict.at
  for (const [p, { limit, cost }] of parts.entries()) {
    const status = limits[p] as LimitStatus
    const placeUs = limit.place?.(verdict.view, at, verdict.nowUs, cost) ?? 0
    if (placeUs > 0) status.retryAfterMs = Math.max(status.retryAfterMs, placeUs / 1000)
    if (longest === undefined || status.retryAfterMs > longest.retryAfterMs) longest = status
    at += limit.viewSize
  }
  return longest && { status: longest, reason: 'limit' }
}

function besideOf({ kind, rule, parts }: Follower, verdict: Verdict): BesideDecision | undefined {
  if (kind === 'penalty') return undefined
  const limits: LimitStatus[] = []
  const refuser = tellAll(parts, verdict, limits)
  const beside: BesideDecision = { kind, allowed: verdict.allowed, retryAfterMs: 0, limits }
  if (rule !== undefined) beside.rule = rule
  if (refuser !== undefined) {
    beside.limitedBy = refuser.status.name
    beside.retryAfterMs = refuser.status.retryAfterMs
  }
  return beside
}

/** All fields from the start, so that every status has one shape. */
function blank(rule: string | undefined, name: string): LimitStatus {
  return rule === undefined
    ? { name, limit: 0, capacity: 0, periodMs: 0, remaining: 0, retryAfterMs: 0, nextMs: 0, resetAfterMs: 0 }
    : { rule, name, limit: 0, capacity: 0, periodMs: 0, remaining: 0, retryAfterMs: 0, nextMs: 0, resetAfterMs: 0 }
}
