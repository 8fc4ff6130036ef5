import type { BesideDecision, Decision, LimitStatus, Reason, Source } from './decision.ts'
import { keyOf } from './part.ts'
import { type Charge, type ChargedWhere, isInShares, writeReceipt } from './receipt.ts'
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
    if (!allowed && !check.peek) {
      decision.punish(judged, (i) => {
        const { view, at } = followers[i] as Verdict
        return judged[i]?.parts[0]?.limit.room(view, at) === 0
      })
    }
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
  #form: ChargedWhere = 'store'
  #apart: readonly Apart[] | undefined
  #punished: readonly Follower[] | undefined

  constructor(allowed: boolean, at: number, source: Source, degraded: boolean) {
    this.allowed = allowed
    this.at = at
    this.source = source
    this.degraded = degraded
    if (source === 'local') this.#form = 'local'
  }

  get receipt(): string | undefined {
    if (this.#parts === undefined) return undefined
    return writeReceipt(this.#form, this.#parts, this.#charges)
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

  /** The charge of each part, also of those that the decision left out. */
  static chargesFor(decision: Decision, parts: readonly Part[]): readonly Charge[] {
    const charges = Decided.chargesOf(decision)
    const charged = #parts in decision ? (decision.#parts ?? []) : []
    return parts.map((part) => charges[charged.findIndex((each) => keyOf(each) === keyOf(part))] ?? UNCHARGED)
  }

  /** One decision of the parts of a check that were decided apart, in the order in which they were. */
  static join({ parts, operation }: Check, apart: readonly Apart[]): Decided {
    const last = (apart.at(-1) as Apart).decision
    const worst = worstOf(apart)
    const { source, degraded } = apart.find(({ decision }) => decision.degraded)?.decision ?? last
    const joined = new Decided(worst === undefined, last.at, source, degraded)
    joined.retryAfterMs = worst?.retryAfterMs ?? 0
    if (worst?.reason !== undefined) joined.reason = worst.reason
    if (worst?.rule !== undefined) joined.rule = worst.rule
    if (worst?.limitedBy !== undefined) joined.limitedBy = worst.limitedBy
    let granted = 0
    let waitUs = 0
    for (const { decision } of apart) {
      joined.delayMs = Math.max(joined.delayMs, decision.delayMs)
      if (decision.beside !== undefined) joined.beside = decision.beside
      const result = Decided.resultOf(decision)
      if (result !== undefined) granted = result
      // Of places in line the latest counts; each is by the clock of its own store.
      if (result !== undefined) waitUs = Math.max(waitUs, result - decision.at * 1000)
    }
    joined.#result = operation?.name === 'book' ? Math.round(last.at * 1000 + waitUs) : granted
    // Who waits with a ticket does so where it was refused.
    if (operation?.name === 'book' && !joined.allowed) {
      const refused = apart.filter(({ decision }) => !decision.allowed)
      joined.#result = Math.max(0, ...refused.map(({ decision }) => Decided.resultOf(decision) ?? 0))
    }
    joined.#inOrder(parts, apart, operation?.name === 'take-up-to' ? granted : undefined)
    if (!joined.allowed || operation?.name === 'reserve') joined.#parts = undefined
    return joined
  }

  /** What was told of each part and charged for it, in the order of the check. */
  #inOrder(parts: readonly Part[], apart: readonly Apart[], granted: number | undefined): void {
    this.#apart = apart
    const sides = apart.map(({ parts, decision }) => ({
      keys: new Set(parts.map(keyOf)),
      statuses: decision.limits.values(),
      charges: Decided.chargesFor(decision, parts).values(),
      form: formOf(decision),
    }))
    // A receipt is of one store: what a share admitted beside it is not in it. What this process keeps goes with either.
    const shared = sides.filter((_, i) => apart[i]?.parts.some(({ limit }) => limit.scope === undefined))
    this.#form = shared.some(({ form }) => form === 'store') ? 'store' : 'local'
    const charged: Part[] = []
    const charges: Charge[] = []
    for (const part of parts) {
      const side = sides.find(({ keys }) => keys.has(keyOf(part))) as (typeof sides)[number]
      const status = side.statuses.next()
      if (!status.done) this.limits.push(status.value)
      const charge = side.charges.next().value ?? UNCHARGED
      if (this.#form === 'local' && !isInShares(part, parts)) continue
      charged.push(part)
      if (this.#form === 'store' && side.form !== 'store') charges.push(UNCHARGED)
      else charges.push(granted !== undefined && charge.cost > 0 ? { ...charge, cost: granted } : charge)
    }
    this.#charges = charges
    if (sides.some(({ form }) => form !== undefined)) this.#parts = charged

    function formOf(decision: Decision): ChargedWhere | undefined {
      return #parts in decision && decision.#parts !== undefined ? decision.#form : undefined
    }
  }

  /** Where the parts of an admitted check were charged; what only a policy let pass was not, but for this process's own. */
  static chargedAt(decision: Decision | undefined, parts: readonly Part[]): [ChargedWhere, Part[]][] {
    const wheres = { store: [] as Part[], local: [] as Part[] }
    for (const part of parts) {
      const where = Decided.#whereOf(decision, part)
      if (where !== undefined) wheres[where].push(part)
    }
    return (['store', 'local'] as const).flatMap((where) => (wheres[where].length > 0 ? [[where, wheres[where]]] : []))
  }

  static #whereOf(decision: Decision | undefined, part: Part): ChargedWhere | undefined {
    if (decision === undefined) return 'store'
    const apart = #apart in decision ? decision.#apart : undefined
    const own = apart?.find(({ parts }) => parts.some((each) => keyOf(each) === keyOf(part)))
    if (own !== undefined) return Decided.#whereOf(own.decision, part)
    if (decision.source === 'policy') return undefined
    return decision.source === 'local' ? 'local' : 'store'
  }

  /** The refusal may have been the last one that a penalty lets go by. @param isSpent whether a follower has no room left */
  punish(followers: readonly Follower[], isSpent: (follower: number) => boolean): void {
    followers.forEach((follower, i) => {
      const refused = follower.places.some((place) => (this.limits[place]?.retryAfterMs ?? 0) > 0)
      if (follower.kind !== 'penalty' || !refused || !isSpent(i)) return
      this.#punished = [...(this.#punished ?? []), follower]
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

export const chargesFor = Decided.chargesFor

export const joinDecisions = Decided.join

export const chargedAt = Decided.chargedAt

export const punishedBy = Decided.punishedBy

export const chargesOf = Decided.chargesOf

/** Parts of a check, and what was decided about them. */
export interface Apart {
  readonly parts: readonly Part[]
  readonly decision: Decision
}

const UNCHARGED: Charge = { cost: 0, chargedUs: 0, instantUs: 0 }

/** Of those that refuse, the one with the longest wait. */
function worstOf(apart: readonly Apart[]): Decision | undefined {
  let worst: Decision | undefined
  for (const { decision } of apart) {
    if (!decision.allowed && (worst === undefined || decision.retryAfterMs > worst.retryAfterMs)) worst = decision
  }
  return worst
}

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
    const status = blankStatus(rule, name)
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
      // Also where the limit itself has room only later: while it is blocked, no reset lets anybody pass.
      blocked = isBlocked && status.retryAfterMs !== Number.POSITIVE_INFINITY
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
export function blankStatus(rule: string | undefined, name: string): LimitStatus {
  return rule === undefined
    ? { name, limit: 0, capacity: 0, periodMs: 0, remaining: 0, retryAfterMs: 0, nextMs: 0, resetAfterMs: 0 }
    : { rule, name, limit: 0, capacity: 0, periodMs: 0, remaining: 0, retryAfterMs: 0, nextMs: 0, resetAfterMs: 0 }
}
