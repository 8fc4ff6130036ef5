import { randomFillSync } from 'node:crypto'
import type { Decision } from './decision.ts'
import { chargedAt, type Decided, deriveDecision, joinDecisions, resultOf } from './derive.ts'
import { dated, givesBack, keptOf } from './give-back.ts'
import type { Check, Follower, Operation, Part } from './store.ts'
import { memoryStore } from './stores/memory.ts'

/** Limits that a check cannot simply be handed to the store with. */
export function isSpecial({ limit }: Part): boolean {
  return limit.scope === 'instance' || limit.holdsSlots === true
}

type Operate = (check: Check, where?: 'store' | 'local') => Promise<number[]>

/**
 * Checks of limits that each process counts for itself (`scope: instance`), and of limits whose
 * slots are held. The first are judged here before the others are asked, and given back where these
 * refuse: never too much is admitted, and what is taken for a moment is this process's own.
 */
export class Split {
  private readonly operateAll: Operate
  /** Budgets of this process. */
  private readonly own = memoryStore()

  constructor(operate: Operate) {
    this.operateAll = operate
  }

  async decide(check: Check, decideShared: (check: Check) => Promise<Decision>): Promise<Decision> {
    const parts = check.peek ? check.parts : check.parts.map(withSlot)
    const decision = await this.decideParts({ ...check, parts }, decideShared)
    const slots = parts.filter(({ limit }) => limit.holdsSlots === true)
    if (decision.allowed && !check.peek && slots.length > 0) this.giveSlots(decision, slots)
    return decision
  }

  /** An operation on keys; each store has its own. */
  async operate(check: Check, shared: (check: Check) => Promise<number[]>): Promise<number[]> {
    if (!check.parts.some(isOwn)) return shared(dated(check))
    const theirs = check.parts.filter((part) => !isOwn(part))
    const others = theirs.length === 0 ? [] : await shared(dated({ ...check, parts: theirs }))
    const own = this.operateOwn({ ...check, parts: check.parts.filter(isOwn) })
    return check.parts.map((part) => (isOwn(part) ? own.shift() : others.shift()) as number)
  }

  async close(): Promise<void> {
    await this.own.close()
  }

  private async decideParts(check: Check, decideShared: (check: Check) => Promise<Decision>): Promise<Decision> {
    const ownParts = check.parts.filter(isOwn)
    if (ownParts.length === 0) return decideShared(check)
    const own = this.judgeOwn({ ...check, parts: ownParts, followers: undefined })
    const shared = sharedOf(check, own)
    if (shared.parts.length === 0 && shared.followers === undefined) return own
    const operation = check.operation
    const charged = own.allowed && !check.peek
    let decision: Decision
    try {
      decision = await decideShared(shared)
    } catch (error) {
      // No decision charges nothing.
      if (charged) this.giveBack(own, ownParts, 0, operation)
      throw error
    }
    if (charged) this.giveBack(own, ownParts, keptOf(decision, operation), operation)
    return joinDecisions(check, [
      { parts: ownParts, decision: own },
      { parts: shared.parts, decision },
    ])
  }

  private judgeOwn(check: Check): Decided {
    return deriveDecision(check, this.own.judge(check), 'store', false)
  }

  /** What the others did not admit is not kept here. */
  private giveBack(own: Decided, parts: readonly Part[], kept: number, operation: Operation | undefined): void {
    const back = givesBack(own, parts, kept, operation)
    for (const check of back) this.operateOwn(check)
    // What is told is what is left now.
    if (back.length > 0 && operation?.name !== 'reserve') own.limits = this.judgeOwn({ parts, peek: true }).limits
  }

  private operateOwn(check: Check): number[] {
    return check.parts.length === 0 ? [] : this.own.judge(dated(check)).view.slice(0, check.parts.length)
  }

  private giveSlots(decision: Decision, slots: readonly Part[]): void {
    const operate = async (name: 'release' | 'renew'): Promise<number[]> => {
      const results = chargedAt(decision, slots).map(([where, held]) =>
        this.operateAll({ parts: held, peek: false, operation: { name, args: [] } }, where),
      )
      return (await Promise.all(results)).flat()
    }
    decision.slotMs = Math.min(...slots.map(({ limit }) => limit.periodUs)) / 1000
    let released: Promise<void> | undefined
    decision.release = () => {
      released ??= operate('release').then(
        () => undefined,
        (error) => {
          // Whoever is told that it failed may try again; if nobody does, the slots lapse.
          released = undefined
          throw error
        },
      )
      return released
    }
    decision.renew = async () => released === undefined && (await operate('renew')).every((held) => held === 1)
  }
}

function isOwn({ limit }: Part): boolean {
  return limit.scope === 'instance'
}

/** The check of the parts that are not judged here; where these refused it only asks. */
function sharedOf(check: Check, own: Decided): Check {
  const parts = check.parts.filter((part) => !isOwn(part))
  const places = check.parts.map((part) => parts.indexOf(part))
  const followers = check.followers?.map(
    (follower): Follower => ({
      ...follower,
      places: follower.places.map((place) => places[place] as number).filter((place) => place >= 0),
    }),
  )
  const shared: Check = { parts, peek: check.peek || !own.allowed, followers }
  if (check.operation === undefined || !own.allowed) return shared
  const granted = resultOf(own) ?? 0
  return {
    ...shared,
    operation: check.operation.name === 'take-up-to' ? { name: 'take-up-to', args: [granted] } : check.operation,
  }
}

function withSlot(part: Part): Part {
  return part.limit.holdsSlots === true ? { ...part, id: newId() } : part
}

const random = new BigUint64Array(128)
let unused = 0

/** A random id from 1 to 2^53 − 1. */
export function newId(): number {
  if (unused === 0) {
    randomFillSync(random)
    unused = random.length
  }
  unused -= 1
  return Number((random[unused] as bigint) >> 11n) || 1
}
