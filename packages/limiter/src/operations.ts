import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Decision } from './decision.ts'
import { chargedAt, resultOf } from './derive.ts'
import { LONGEST_TIMER_MS } from './duration.ts'
import { HeadgateError, InvalidArgumentError, show } from './errors.ts'
import { costOf } from './part.ts'
import { chargedWhere, isInShares, readReceipt } from './receipt.ts'
import { newId } from './split.ts'
import type { Check, Follower, Operation, OperationName, Part } from './store.ts'

/** What `takeUpTo` gives. */
export interface Grant {
  /** Units taken from every limit, 0 to what was asked. */
  readonly granted: number
  readonly decision: Decision
}

export interface CheckOptions {
  /** Aborting rejects with the signal's reason; what was already written stays charged. */
  signal?: AbortSignal | undefined
}

export interface AcquireOptions extends CheckOptions {
  /** The longest wait, in ms; default 30 s. A place that comes later is refused at once. */
  timeoutMs?: number | undefined
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

/** What is known to be valid: enforced parts, and what is judged beside them. */
export interface Judged {
  readonly parts: readonly Part[]
  readonly followers?: readonly Follower[]
}

/** The engine, as operations need it. */
interface Ways {
  run(check: Check, options?: CheckOptions): Promise<Decision>
  operate(check: Check, where?: 'store' | 'local'): Promise<number[]>
}

const DEFAULT_WAIT_MS = 30_000
const DEFAULT_HOLD_MS = 60_000
/** Ten years: what for ever means. */
const LONGEST_MS = 3660 * 86_400_000
/** How many may wait for what cannot be booked, and how long they wait between two tries, in ms. */
const MAX_WAITING = 10_000
const FIRST_TRY_MS = 5
const LAST_TRY_MS = 100
/** Results of `commit` where nothing was held any more. */
const LATE = [1, 4]

/** Everything that can be done with limits but check and peek; one for each engine. */
export class Operations {
  private readonly ways: Ways
  private readonly closing = new AbortController()
  private waiting = 0
  /** Callers that wait for a place that they booked. */
  private readonly inLine = new Set<Promise<void>>()
  private givingBack = 0

  constructor(ways: Ways) {
    this.ways = ways
  }

  async takeUpTo(parts: readonly Part[], most: number, options?: CheckOptions): Promise<Grant> {
    if (typeof most !== 'number' || !Number.isSafeInteger(most) || most < 1) {
      throw new InvalidArgumentError('most', `${show(most)} is not an integer from 1 to ${Number.MAX_SAFE_INTEGER}`)
    }
    const check = { parts: parts.map((part) => ({ ...part, cost: 1 })), peek: false, operation: op('take-up-to', most) }
    const decision = await this.ways.run(check, options)
    return { granted: decision.allowed ? (resultOf(decision) ?? most) : 0, decision }
  }

  async acquire(judged: Judged, options: AcquireOptions = {}): Promise<Decision> {
    const { timeoutMs = DEFAULT_WAIT_MS } = options
    const longestMs = spanOf(timeoutMs, 'timeoutMs', 0)
    const begun = performance.now()
    if (!judged.parts.every(({ limit }) => limit.place !== undefined))
      return this.acquireByTurns(judged, longestMs, options)
    const operation = op('book', Math.floor(longestMs * 1000))
    const decision = await this.ways.run(
      { ...judged, parts: judged.parts.map(waiting), peek: false, operation },
      options,
    )
    if (decision.allowed) {
      const startUs = resultOf(decision) ?? 0
      const waitMs = Math.max(startUs / 1000 - decision.at, decision.delayMs)
      if (waitMs > 0) await this.waitFor(waitMs, judged, decision, options.signal)
      decision.delayMs = 0
    }
    decision.waitedMs = performance.now() - begun
    return decision
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
      if (charge === undefined) return { ...part, cost: 0 }
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
    return this.givingBack > 0
  }

  /** Whoever still waits is told, and its place is given back. */
  async close(): Promise<void> {
    this.closing.abort(new HeadgateError('HEADGATE_CLOSED', 'the limiter was closed while this caller waited'))
    await Promise.allSettled(this.inLine)
  }

  /** Waits for a place that was booked; who does not wait for it gives it back. */
  private async waitFor(ms: number, judged: Judged, decision: Decision, signal?: AbortSignal): Promise<void> {
    const waited = this.pause(ms, signal).catch(async (error: unknown) => {
      await this.giveBack(judged.parts, decision.receipt)
      throw error
    })
    this.inLine.add(waited)
    try {
      await waited
    } finally {
      this.inLine.delete(waited)
    }
  }

  private async giveBack(parts: readonly Part[], receipt: string | undefined): Promise<void> {
    if (receipt === undefined) return
    const whole = parts.map(() => true)
    this.givingBack += 1
    try {
      await this.refund(parts, { receipt }, whole).catch(() => undefined)
    } finally {
      this.givingBack -= 1
    }
  }

  /** For limits without a line: asks again until the store admits. */
  private async acquireByTurns(judged: Judged, longestMs: number, options: AcquireOptions): Promise<Decision> {
    const begun = performance.now()
    if (this.waiting >= MAX_WAITING) throw new HeadgateError('HEADGATE_BUSY', `${MAX_WAITING} callers wait already`)
    this.waiting += 1
    try {
      for (let tryMs = FIRST_TRY_MS; ; tryMs = Math.min(LAST_TRY_MS, tryMs * 2)) {
        const decision = await this.ways.run({ ...judged, peek: false }, options)
        if (decision.allowed) {
          if (decision.delayMs > 0) await this.waitFor(decision.delayMs, judged, decision, options.signal)
          decision.delayMs = 0
        }
        const leftMs = begun + patienceMs(judged.parts, decision, longestMs) - performance.now()
        decision.waitedMs = performance.now() - begun
        // Slots come back earlier than they lapse.
        const slots = judged.parts.some(({ limit }) => limit.holdsSlots)
        const earliestMs = slots ? Math.min(tryMs, decision.retryAfterMs) : decision.retryAfterMs
        if (decision.allowed || decision.reason !== 'limit' || earliestMs > leftMs) return decision
        await this.pause(slots ? earliestMs : Math.max(1, earliestMs), options.signal)
      }
    } finally {
      this.waiting -= 1
    }
  }

  private async pause(ms: number, signal?: AbortSignal): Promise<void> {
    const ends = signal === undefined ? this.closing.signal : AbortSignal.any([this.closing.signal, signal])
    const untilMs = performance.now() + ms
    try {
      // A timer may fire early, and cannot wait for more than 24 days.
      for (let leftMs = ms; leftMs > 0; leftMs = untilMs - performance.now()) {
        await sleep(Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS), undefined, { signal: ends })
      }
    } catch {
      throw ends.reason
    }
  }
}

/** A part with the longest wait of its own (µs, at least 1) as its id. */
function waiting(part: Part): Part {
  return part.maxWaitMs === undefined ? part : { ...part, id: Math.max(1, Math.floor(part.maxWaitMs * 1000)) }
}

/** How long those that refuse let wait: the shortest of them counts. */
function patienceMs(parts: readonly Part[], { limits }: Decision, longestMs: number): number {
  return limits.reduce((shortestMs, { retryAfterMs }, i) => {
    const ownMs = parts[i]?.maxWaitMs
    return retryAfterMs > 0 && ownMs !== undefined && ownMs < shortestMs ? ownMs : shortestMs
  }, longestMs)
}

function op(name: OperationName, ...args: number[]): Operation {
  return { name, args }
}

/** A caller's id as a number from 1 to 2^53 − 1. */
function idOf(id: unknown): number {
  if (typeof id !== 'string' || id === '') throw new InvalidArgumentError('id', `${show(id)} is not a text`)
  const hash = createHash('sha256').update(id).digest()
  return Number(hash.readBigUInt64BE() >> 11n) || newId()
}

function spanOf(ms: unknown, argument: string, least: number): number {
  if (typeof ms === 'number' && ms >= least && ms <= LONGEST_MS) return ms
  throw new InvalidArgumentError(
    argument,
    `${show(ms)} is not a number of ms from ${least} to ${LONGEST_MS} (ten years)`,
  )
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
