import { createHash, randomUUID } from 'node:crypto'
import type { Decision } from './decision.ts'
import { chargedAt, resultOf } from './derive.ts'
import { InvalidArgumentError, show } from './errors.ts'
import { type AcquireOptions, Line } from './line.ts'
import { costOf } from './part.ts'
import { chargedWhere, isInShares, readReceipt } from './receipt.ts'
import { newId } from './split.ts'
import type { OperationName, Part } from './store.ts'
import { type CheckOptions, type Judged, LONGEST_MS, op, spanOf, type Ways } from './ways.ts'

/** What `takeUpTo` gives. */
export interface Grant {
  /** Units taken from every limit, 0 to what was asked. */
  readonly granted: number
  readonly decision: Decision
}

export interface ReserveOptions extends CheckOptions {
  /** How long the units are held, in ms; default a minute. What is then not committed comes back. */
  holdMs?: number | undefined
  /** Names the reservation: the same id again changes nothing. Default: a random one. */
  id?: string | undefined
}

export interface RefundOptions {
  /** Of the decision that charged. Without one the units are a credit, which no law accounts for. */
  receipt?: string | undefined
  /** The same id again gives nothing back, until a minute after the receipt's charge has drained, or after the refund. */
  id?: string | undefined
}

export interface BlockOptions {
  /** How long, in ms; default for ever, which is ten years. */
  durationMs?: number | undefined
}

/** Units that are held under an id. Each call may be repeated within a minute: it changes nothing more. */
export interface Reservation {
  readonly id: string
  /** Charges what was really used (integer ≥ 0; default what was held), and gives the rest back. */
  commit(actual?: number): Promise<Committed>
  /** Holds the units for so long from now, in ms. @returns false where nothing is held any more */
  extend(holdMs: number): Promise<boolean>
  /** Gives back what has not drained. */
  cancel(): Promise<Committed>
}

export interface Committed {
  /** Nothing was held any more: whatever the cost is was charged anew. */
  readonly late: boolean
  /** Part of the cost was beyond one full budget of debt, and is charged to nobody. */
  readonly unpaid: boolean
}

/** A decision, and the reservation where it was admitted. */
export type Reserved = Decision & { reservation?: Reservation }

const DEFAULT_HOLD_MS = 60_000
/** Results of `commit` where nothing was held any more. */
const LATE = [1, 4]

/** Everything that can be done with limits but check and peek; one for each engine. */
export class Operations {
  private readonly ways: Ways
  private readonly line: Line

  constructor(ways: Ways) {
    this.ways = ways
    this.line = new Line(ways, (parts, { receipt }) => this.giveBack(parts, receipt))
  }

  async takeUpTo(parts: readonly Part[], most: number, options?: CheckOptions): Promise<Grant> {
    if (typeof most !== 'number' || !Number.isSafeInteger(most) || most < 1) {
      throw new InvalidArgumentError('most', `${show(most)} is not an integer from 1 to ${Number.MAX_SAFE_INTEGER}`)
    }
    const check = { parts: parts.map((part) => ({ ...part, cost: 1 })), peek: false, operation: op('take-up-to', most) }
    const decision = await this.ways.run(check, options)
    return { granted: decision.allowed ? (resultOf(decision) ?? most) : 0, decision }
  }

  acquire(judged: Judged, options?: AcquireOptions): Promise<Decision> {
    return this.line.acquire(judged, options)
  }

  async reserve(judged: Judged, options: ReserveOptions = {}): Promise<Reserved> {
    const { holdMs = DEFAULT_HOLD_MS, id = randomUUID() } = options
    const operation = op('reserve', idOf(id), Math.ceil(spanOf(holdMs, 'holdMs', 1) * 1000))
    refuseSlotsAlone(judged.parts)
    const decision: Reserved = await this.ways.run({ ...judged, peek: false, operation }, options)
    if (decision.allowed) decision.reservation = this.reservation(judged.parts, id, decision)
    return decision
  }

  reservation(parts: readonly Part[], id: string, decision?: Decision): Reservation {
    const number = idOf(id)
    refuseSlotsAlone(parts)
    const operate = async (name: OperationName, args: number[], cost?: number): Promise<number[]> => {
      // What was asked with a cost of 0 holds nothing; a caller who knows an id only may commit 0 of it.
      const held = parts.filter(({ limit }) => limit.holdsSlots !== true)
      const charged = decision === undefined ? held : held.filter((part) => part.cost > 0)
      const results = chargedAt(decision, charged).map(([where, kept]) => {
        const costing = cost === undefined ? kept : kept.map((part) => ({ ...part, cost }))
        return this.ways.operate({ parts: costing, peek: false, operation: op(name, ...args) }, where)
      })
      return results.length === 0 ? [name === 'extend' ? 1 : 0] : (await Promise.all(results)).flat()
    }
    const commit = async (actual?: number): Promise<Committed> => {
      const results = await operate('commit', [number], actual === undefined ? undefined : costOf(actual))
      return { late: results.some((result) => LATE.includes(result)), unpaid: results.some((result) => result >= 3) }
    }
    return {
      id,
      commit,
      cancel: () => commit(0),
      extend: async (holdMs) => {
        const holdUs = Math.ceil(spanOf(holdMs, 'holdMs', 1) * 1000)
        return (await operate('extend', [number, holdUs])).every((extended) => extended === 1)
      },
    }
  }

  /** @param whole for each part, whether its receipt says how much, and not its cost */
  async refund(
    parts: readonly Part[],
    { receipt, id }: RefundOptions = {},
    whole: readonly boolean[] = [],
  ): Promise<number[]> {
    const number = id === undefined ? 0 : idOf(id)
    if (receipt === undefined) return this.ways.operate({ parts, peek: false, operation: op('refund', number, 0, 0) })
    const where = chargedWhere(receipt) ?? 'store'
    const charged = parts.map((part) => where === 'store' || isInShares(part, parts))
    const charges = readReceipt(
      receipt,
      parts.filter((_, i) => charged[i]),
    )
    let again = 0
    const back = parts.map((part, i) => {
      const charge = charged[i] ? charges.shift() : undefined
      // Of slots a receipt says nothing; without an instant it would be a credit, whatever counts now.
      if (charge === undefined || charge.instantUs === 0) return { ...part, cost: 0 }
      const cost = whole[i] ? charge.cost : Math.min(part.cost, charge.cost)
      if (cost < charge.cost) again = 1
      return { ...part, cost, id: charge.instantUs, chargedUs: charge.chargedUs }
    })
    return this.ways.operate({ parts: back, peek: false, operation: op('refund', number, 0, again) }, where)
  }

  async reset(parts: readonly Part[]): Promise<void> {
    await this.ways.operate({ parts, peek: false, operation: op('reset') })
  }

  async block(parts: readonly Part[], { durationMs = LONGEST_MS }: BlockOptions = {}): Promise<void> {
    const ms = durationMs === Number.POSITIVE_INFINITY ? LONGEST_MS : spanOf(durationMs, 'durationMs', 1)
    await this.ways.operate({ parts, peek: false, operation: op('block', Math.ceil(ms * 1000)) })
  }

  async unblock(parts: readonly Part[]): Promise<boolean> {
    return (await this.ways.operate({ parts, peek: false, operation: op('unblock') })).includes(1)
  }

  get givesBack(): boolean {
    return this.line.busy
  }

  /** Whoever still waits is told, and its place is given back. */
  close(): Promise<void> {
    return this.line.close()
  }

  /** Slots of these parts came back. */
  released(parts: readonly Part[]): void {
    this.line.wake(parts)
  }

  private async giveBack(parts: readonly Part[], receipt: string | undefined): Promise<void> {
    if (receipt === undefined) return
    const whole = parts.map(() => true)
    await this.refund(parts, { receipt }, whole).catch(() => undefined)
  }
}

/** A caller's id as a number from 1 to 2^53 − 1. */
function idOf(id: unknown): number {
  if (typeof id !== 'string' || id === '')
    throw new InvalidArgumentError('id', `${show(id)} is not a text of at least one character`)
  const hash = createHash('sha256').update(id).digest()
  return Number(hash.readBigUInt64BE() >> 11n) || newId()
}

/** Slots beside other limits are held as long as they are; a reservation of slots alone holds nothing. */
function refuseSlotsAlone(parts: readonly Part[]): void {
  const slots = parts.every(({ limit }) => limit.holdsSlots) ? parts[0] : undefined
  if (slots === undefined) return
  throw new InvalidArgumentError(
    'limits',
    `slots of ${show(slots.name)} are held already; check() and release() are for them`,
  )
}
