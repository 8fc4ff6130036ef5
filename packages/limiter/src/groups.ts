import type { BesideDecision, Decision } from './decision.ts'
import { type Apart, Decided, joinDecisions, resultOf } from './derive.ts'
import { dated, givesBack, keptOf } from './give-back.ts'
import type { Check, Follower, Part, RemoteStore } from './store.ts'

type DecideOne = (check: Check) => Promise<Decision>
type Operate = (check: Check, where: 'store' | 'local') => Promise<number[]>

/** A store whose counters stand in groups, each of which is judged in one call. */
type GroupedStore = Pick<RemoteStore, 'groupOf'>

/**
 * Checks of counters that no single call can judge. They are taken group by group: the caller's own limits first, what all
 * callers share last; where one refuses, what was taken is given back. So never too much is admitted, and nobody who is
 * refused by a limit of its own takes anything from the others, not for a moment.
 */
export class Groups {
  private readonly groupOf: (part: Part) => number
  private readonly operateOne: Operate
  private readonly lost: (error: Error) => void

  /**
   * @param operate on keys of one group
   * @param lost is told of a charge that could not be given back
   */
  constructor(store: GroupedStore, operate: Operate, lost: (error: Error) => void) {
    this.groupOf = (part) => store.groupOf?.(part) ?? 0
    this.operateOne = operate
    this.lost = lost
  }

  /** Whether one call cannot judge it. */
  isSpread({ parts, followers }: Check): boolean {
    const first = parts[0] ?? followers?.[0]?.parts[0]
    if (first === undefined) return false
    const group = this.groupOf(first)
    const elsewhere = (part: Part) => this.groupOf(part) !== group
    return parts.some(elsewhere) || (followers?.some(({ parts }) => parts.some(elsewhere)) ?? false)
  }

  /** @param decideOne decides a check of one group */
  async decide(check: Check, decideOne: DecideOne): Promise<Decision> {
    const { followers, ...enforced } = check
    const decided =
      check.parts.length === 0 ? new Decided(true, Date.now(), 'store', false) : await this.take(enforced, decideOne)
    if (followers !== undefined && !decided.degraded) await this.follow(check, followers, decided, decideOne)
    return decided
  }

  /** An operation on keys: each group by itself. */
  async operate(check: Check, operateOne: (check: Check) => Promise<number[]>): Promise<number[]> {
    const groups = this.inOrder(check.parts)
    // All are heard of before the first fault is told.
    const settled = await Promise.allSettled(
      groups.map(async (parts) => (isIdle(check, parts) ? parts.map(() => 0) : operateOne(dated({ ...check, parts })))),
    )
    const results = new Map<Part, number>()
    for (const [i, parts] of groups.entries()) {
      const each = settled[i] as PromiseSettledResult<number[]>
      if (each.status === 'rejected') throw each.reason
      for (const [p, part] of parts.entries()) results.set(part, each.value[p] as number)
    }
    return check.parts.map((part) => results.get(part) as number)
  }

  private async take(check: Check, decideOne: DecideOne): Promise<Decided> {
    const groups = this.inOrder(check.parts)
    const ask = (parts: readonly Part[]) => decideOne({ parts, peek: true })
    if (check.peek)
      return joinDecisions(check, await Promise.all(groups.map(async (parts) => apart(parts, await ask(parts)))))
    const taken = await this.takeInTurn(check, groups, decideOne)
    const last = (taken.at(-1) as Apart).decision
    const kept = keptOf(last, check.operation)
    const back = this.giveBack(check, taken, kept)
    // What is told is what is left now: of those that gave back, and of those that were not asked yet.
    const changed = (parts: readonly Part[], decision?: Decision) =>
      decision === undefined || (decision !== last && givesBack(decision, parts, kept, check.operation).length > 0)
    const decided = await Promise.all(
      groups.map(async (parts, i) => {
        const decision = taken[i]?.decision
        if (!changed(parts, decision)) return apart(parts, decision as Decision)
        if (decision === undefined) await begun(parts, decideOne)
        const left = await ask(parts)
        if (!last.allowed) return apart(parts, left)
        if (decision !== undefined) decision.limits = left.limits
        return apart(parts, decision ?? left)
      }),
    )
    await back
    return joinDecisions(check, decided)
  }

  /** @returns what was decided, until a group refuses */
  private async takeInTurn(check: Check, groups: readonly Part[][], decideOne: DecideOne): Promise<Apart[]> {
    const taken: Apart[] = []
    let { operation } = check
    try {
      for (const parts of groups) {
        const decision = await decideOne({ ...check, parts, operation })
        taken.push({ parts, decision })
        if (!decision.allowed) break
        // Nobody has to give more than the least.
        if (operation?.name === 'take-up-to')
          operation = { ...operation, args: [resultOf(decision) ?? operation.args[0] ?? 0] }
      }
    } catch (error) {
      // No decision charges nothing.
      await this.giveBack(check, taken, 0)
      throw error
    }
    return taken
  }

  /** All but `kept` of what was charged; a peek that is asked in the same turn already sees it. */
  private async giveBack({ operation }: Check, taken: readonly Apart[], kept: number): Promise<void> {
    const back = taken.flatMap(({ parts, decision }) => {
      if (!decision.allowed || decision.source === 'policy') return []
      const where = decision.source === 'local' ? 'local' : 'store'
      return givesBack(decision, parts, kept, operation).map((check) => this.operateOne(dated(check), where))
    })
    for (const each of await Promise.allSettled(back)) if (each.status === 'rejected') this.lost(each.reason as Error)
  }

  /** Judges what goes by the answer of the enforced limits, once that is known. */
  private async follow(
    check: Check,
    followers: readonly Follower[],
    decided: Decided,
    decideOne: DecideOne,
  ): Promise<void> {
    const fits = check.parts.map((_, p) => decided.allowed || (decided.limits[p]?.retryAfterMs ?? 0) === 0)
    const repeated = check.operation?.name === 'reserve' && resultOf(decided) === 1
    const uncharged = check.peek || repeated || decided.limits.some(({ blocked }) => blocked === true)
    const judged = await Promise.all(
      followers.map(({ kind, parts, places }) => {
        const listed = (p: number) => places.includes(p)
        const wanted =
          kind === 'penalty' ? fits.some((fit, p) => !fit && listed(p)) : fits.every((fit, p) => fit || listed(p))
        const follower = { parts, peek: uncharged || !wanted }
        return this.isSpread(follower) ? this.take(follower, decideOne) : decideOne(follower)
      }),
    )
    const beside = judged.flatMap((decision, i) => besideOf(followers[i] as Follower, decision) ?? [])
    if (beside.length > 0) decided.beside = beside
    if (check.parts.length === 0) decided.at = judged[0]?.at ?? decided.at
    if (decided.allowed || check.peek) return
    decided.punish(followers, (i) => judged[i]?.source === 'store' && judged[i]?.limits[0]?.remaining === 0)
  }

  /** By group: the caller's own first, the smallest budgets before others; what stands under no value is everybody's. */
  private inOrder(parts: readonly Part[]): Part[][] {
    const groups = new Map<number, Part[]>()
    for (const part of parts) {
      const group = this.groupOf(part)
      const members = groups.get(group)
      if (members === undefined) groups.set(group, [part])
      else members.push(part)
    }
    return [...groups.values()].sort((a, b) => reachOf(a) - reachOf(b))
  }
}

/** Nothing of it was charged in the store: its node may well be away. */
function isIdle({ operation }: Check, parts: readonly Part[]): boolean {
  return operation?.name === 'refund' && parts.every(({ cost }) => cost === 0)
}

function apart(parts: readonly Part[], decision: Decision): Apart {
  return { parts, decision }
}

/** What begins exhausted does so since it was first asked for, also where a limit before it refused. */
async function begun(parts: readonly Part[], decideOne: DecideOne): Promise<void> {
  const fresh = parts.filter(({ limit }) => limit.startsEmpty === true).map((part) => ({ ...part, cost: 0 }))
  if (fresh.length > 0) await decideOne({ parts: fresh, peek: false })
}

/** How much of what others need a group may hold: the rate of its widest limit. */
function reachOf(parts: readonly Part[]): number {
  return Math.max(
    ...parts.map(({ value, limit }) => {
      if (value === '') return Number.POSITIVE_INFINITY
      return limit.limit / (limit.periodUs === 0 ? 1 : limit.periodUs)
    }),
  )
}

function besideOf({ kind, rule }: Follower, decision: Decision): BesideDecision | undefined {
  if (kind === 'penalty' || decision.source !== 'store') return undefined
  const { allowed, retryAfterMs, limits, limitedBy } = decision
  const beside: BesideDecision = { kind, allowed, retryAfterMs, limits }
  if (rule !== undefined) beside.rule = rule
  if (limitedBy !== undefined) beside.limitedBy = limitedBy
  return beside
}
