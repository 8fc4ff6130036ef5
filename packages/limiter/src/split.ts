import { randomFillSync } from 'node:crypto'
import type { Decision } from './decision.ts'
import { chargesOf, type Decided, deriveDecision, joinDecisions, resultOf } from './derive.ts'
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
    return joinDecisions(check, own, decision, isOwn)
  }

  private judgeOwn(check: Check): Decided {
    return deriveDecision(check, this.own.judge(check), 'store', false)
  }

  /** What the others did not admit is not kept here. */
  private giveBack(own: Decided, parts: readonly Part[], kept: number, operation: Operation | undefined): void {
    if (operation?.name === 'reserve') {
      if (kept === 0) this.operateOwn({ parts: withoutCost(parts), peek: false, operation: cancel(operation) })
      return
    }
    const back = chargesOf(own).map(({ cost, chargedUs, instantUs }, i) => {
      const part = parts[i] as Part
      return { ...part, cost: Math.max(0, cost - kept), id: part.limit.holdsSlots ? part.id : instantUs, chargedUs }
    })
    if (back.every(({ cost }) => cost === 0)) return
    this.operateOwn({
      parts: back.filter(({ limit }) => !limit.holdsSlots),
      peek: false,
      operation: REFUND,
    })
    this.operateOwn({ parts: back.filter(({ limit }) => limit.holdsSlots), peek: false, operation: RELEASE })
    // What is told is what is left now.
    own.limits = this.judgeOwn({ parts, peek: true }).limits
  }

  private operateOwn(check: Check): number[] {
    return check.parts.length === 0 ? [] : this.own.judge(dated(check)).view.slice(0, check.parts.length)
  }

  private giveSlots(decision: Decision, slots: readonly Part[]): void {
    // Slots of a local share are held where they were taken; without a store nothing holds any.
    const where = decision.source === 'local' ? 'local' : 'store'
    const operate = async (name: 'release' | 'renew') => {
      const held = decision.source === 'policy' ? slots.filter(isOwn) : slots
      return held.length === 0
        ? []
        : this.operateAll({ parts: held, peek: false, operation: { name, args: [] } }, where)
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

const REFUND = { name: 'refund', args: [0, 0, 0] } as const
const RELEASE = { name: 'release', args: [] } as const

/** How much of what was charged here the others admitted too. */
function keptOf(decision: Decision, operation: Operation | undefined): number {
  if (!decision.allowed) return 0
  const granted = operation?.name === 'take-up-to' ? resultOf(decision) : undefined
  return granted ?? Number.MAX_SAFE_INTEGER
}

function cancel({ args }: Operation): Operation {
  return { name: 'commit', args: [args[0] as number] }
}

function withoutCost(parts: readonly Part[]): Part[] {
  return parts.map((part) => ({ ...part, cost: 0 }))
}

/** A refund goes by the instant of the charge, which each store tells by its own clock. */
function dated(check: Check): Check {
  const { operation, parts } = check
  if (operation?.name !== 'refund') return check
  const [id = 0, , again = 0] = operation.args
  return { ...check, operation: { name: 'refund', args: [id, parts[0]?.chargedUs ?? 0, again] } }
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
