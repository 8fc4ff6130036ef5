import type { Decision, LimitStatus } from './decision.ts'
import { blankStatus, Decided } from './derive.ts'
import { isSame, type Limit } from './limit.ts'
import { keyOf } from './part.ts'
import { LEASE_US } from './script/marks.ts'
import { newId } from './split.ts'
import type { ChangeListener, Check, OperationName, Part, RemoteStore, StoreFault, Verdict } from './store.ts'
import { op } from './ways.ts'

/** Below so many units a lease gains nothing: the counter stays exact. */
const LEAST = 4
/** A slice is at most this part of the capacity, so that little lies idle here. */
const OWN_SHARE = 50
/** For how long a slice should last, in ms. */
const SLICE_MS = 20
/** How often what was used is reported, and what is idle given back, in ms. */
const TEND_MS = 100
/** How long a counter is left alone where nothing was to be had, and where the store did not answer, in ms. */
const POOR_MS = 100
const FAULT_MS = 250
/** How long before the store does the holder stops, in ms, and in parts of what it was given. */
const MARGIN_MS = 1
const MARGIN_PART = 0.01
/** The most counters that are followed. */
const MAX_SLICES = 10_000

/** Operations that what is held is given back before. */
const YIELDS: readonly (OperationName | undefined)[] = ['reset', 'block', 'unblock']

/** What is held ahead of one counter, and how much of it is asked for. */
class Slice {
  readonly key: string
  part: Part
  id = newId()
  /** Units that may be used. */
  left = 0
  /** Below this more is asked for. */
  low = 0
  /** Units used since it was last asked for more. */
  spent = 0
  /** Until when they may be used. */
  endMs = 0
  /** The view that the store gave, at its instant, when it was received, and units used that are not in it. */
  view: number[] = []
  atUs = 0
  seenMs = 0
  unseen = 0
  /** While the store is asked. */
  asked: Promise<void> | undefined
  /** Whether the store may hold units for it. */
  holds = false
  /** Whether it gives everything back when the store has answered. */
  leaves = false
  restUntilMs = 0
  /** Units asked for since an instant, and a ms before it. */
  private demand = 0
  private sinceMs: number
  private rate = 0

  constructor(key: string, part: Part, nowMs: number) {
    this.key = key
    this.part = part
    this.sinceMs = nowMs
  }

  count(cost: number): void {
    this.demand += cost
  }

  /** How many units should be held, by what was asked for a short time ago. */
  wanted(nowMs: number): number {
    const elapsedMs = nowMs - this.sinceMs
    if (elapsedMs >= SLICE_MS) {
      this.rate = this.demand / elapsedMs
      this.demand = 0
      this.sinceMs = nowMs
    }
    const units = Math.floor(Math.min(Math.max(this.rate * SLICE_MS, this.demand), mostOf(this.part.limit)))
    return units < LEAST ? 0 : units
  }

  forfeit(): void {
    this.id = newId()
    this.left = 0
    this.spent = 0
    this.holds = false
  }
}

/** What leases need of a store. */
export type LeasingStore = Pick<RemoteStore, 'run' | 'watchChanges'>

/**
 * Units that the store gave ahead, and decisions from them. While they are held they count as used for everybody else
 * and do not drain: the store never counts less than what was used, so the limit's own law holds on the instants of use,
 * whoever dies. Everything is asked for in the background; what is not here is decided by the store.
 */
export class Leases {
  private readonly store: LeasingStore
  private readonly timeoutMs: number
  private readonly clock: () => number
  private readonly slices = new Map<string, Slice>()
  /** Of the check that is being looked at. */
  private readonly found: (Slice | undefined)[] = []
  private readonly scratch: number[] = []
  private timer: NodeJS.Timeout | undefined
  private unwatch: (() => void) | undefined
  private closed = false

  /** @param clock in ms, of this process */
  constructor(store: LeasingStore, timeoutMs: number, clock: () => number = () => performance.now()) {
    this.store = store
    this.timeoutMs = timeoutMs
    this.clock = clock
  }

  /** Units that are held here and not used. */
  get stranded(): number {
    const nowMs = this.clock()
    let units = 0
    for (const { left, endMs } of this.slices.values()) if (endMs > nowMs) units += left
    return units
  }

  /** The admission, where every limit of the check has units here; undefined: ask the store. */
  find({ parts, peek, operation, followers }: Check): Decision | undefined {
    if (peek || operation !== undefined || followers !== undefined || this.closed) return undefined
    for (let p = 0; p < parts.length; p++) if (!isLeasable(parts[p] as Part)) return undefined
    const nowMs = this.clock()
    let here = true
    for (let p = 0; p < parts.length; p++) {
      const part = parts[p] as Part
      const slice = this.sliceOf(part, nowMs)
      this.found[p] = slice
      if (slice === undefined || slice.left < part.cost || slice.endMs <= nowMs) here = false
    }
    if (here) return this.take(parts, nowMs)
    for (let p = 0; p < parts.length; p++) {
      const slice = this.found[p]
      if (slice === undefined) continue
      slice.count((parts[p] as Part).cost)
      this.want(slice, nowMs)
    }
    return undefined
  }

  /**
   * Gives back what is held of counters that are reset or blocked: in the same call and before; where more was being asked
   * for, in a call before, which is to be waited for.
   */
  yield({ parts, operation }: Check): Promise<unknown> | undefined {
    if (!YIELDS.includes(operation?.name)) return undefined
    const keys = parts.map(keyOf)
    const asking = keys.some((key) => this.slices.get(key)?.asked !== undefined)
    const back = Promise.all(keys.map((key) => this.recall(key)))
    return asking ? back : undefined
  }

  /** Everything is given back, as far as the store answers. */
  async close(): Promise<void> {
    this.closed = true
    clearTimeout(this.timer)
    this.unwatch?.()
    await Promise.all(Array.from(this.slices.values(), (slice) => this.giveBack(slice)))
    this.slices.clear()
  }

  private take(parts: readonly Part[], nowMs: number): Decision {
    let atUs = 0
    for (let p = 0; p < parts.length; p++) {
      const slice = this.found[p] as Slice
      const { cost } = parts[p] as Part
      slice.left -= cost
      slice.spent += cost
      slice.unseen += cost
      slice.count(cost)
      if (slice.left <= slice.low) this.want(slice, nowMs)
      // Never later than the store's clock, nor earlier than the grant.
      const us = slice.atUs + Math.floor((nowMs - slice.seenMs) * (1 - MARGIN_PART) * 1000)
      if (us > atUs) atUs = us
    }
    const decision = new Decided(true, atUs / 1000, 'lease', false)
    for (let p = 0; p < parts.length; p++) {
      decision.limits.push(this.statusOf(parts[p] as Part, this.found[p] as Slice, atUs))
    }
    return decision
  }

  /** As the store last saw it, with what was used here since: there may be more left, never less. */
  private statusOf({ rule, name, limit }: Part, { view, unseen }: Slice, atUs: number): LimitStatus {
    const status = blankStatus(rule, name)
    const { scratch } = this
    for (let i = 0; i < view.length; i++) scratch[i] = view[i] as number
    limit.withhold(scratch, 0, unseen)
    limit.tell(scratch, 0, atUs, 0, status)
    return status
  }

  private sliceOf(part: Part, nowMs: number): Slice | undefined {
    const key = keyOf(part)
    const slice = this.slices.get(key)
    if (slice === undefined) return this.follow(key, part, nowMs)
    if (slice.part.limit !== part.limit) {
      // Of other numbers is what the store gave under others.
      if (!isSame(slice.part.limit, part.limit) && (slice.holds || slice.asked !== undefined)) {
        void this.giveBack(slice)
        return undefined
      }
      slice.part = plain(part)
    }
    return slice
  }

  private follow(key: string, part: Part, nowMs: number): Slice | undefined {
    if (this.slices.size >= MAX_SLICES) return undefined
    this.unwatch ??= this.store.watchChanges?.(this.listener)
    const slice = new Slice(key, plain(part), nowMs)
    this.slices.set(key, slice)
    this.timer ??= this.tendLater()
    return slice
  }

  private get listener(): ChangeListener {
    return {
      onChange: (key, recalled) => {
        if (recalled) void this.recall(key)
      },
      // Whatever is missed ends with the lease.
      onLive: () => undefined,
    }
  }

  private async recall(key: string): Promise<void> {
    const slice = this.slices.get(key)
    if (slice === undefined) return
    slice.restUntilMs = this.clock() + POOR_MS
    await this.giveBack(slice)
  }

  private want(slice: Slice, nowMs: number): void {
    if (slice.asked !== undefined || slice.restUntilMs > nowMs) return
    const wanted = slice.wanted(nowMs)
    if (wanted === 0) return
    slice.low = Math.floor(wanted / 2)
    // What is left may be used up when the store answers.
    void this.ask(slice, Math.min(wanted + slice.left, mostOf(slice.part.limit)))
  }

  private async giveBack(slice: Slice): Promise<void> {
    slice.left = 0
    slice.leaves = slice.asked !== undefined
    if (slice.asked !== undefined) await slice.asked
    else if (slice.holds) await this.ask(slice, 0)
  }

  /** Reports what was used, and takes as much as is wanted from now on. */
  private ask(slice: Slice, wanted: number): Promise<void> {
    const askedMs = this.clock()
    const { spent } = slice
    slice.spent = 0
    const operation = op('lease', slice.id, wanted, spent)
    const check: Check = { parts: [slice.part], peek: false, operation }
    slice.asked = this.store
      .run(check, performance.now() + this.timeoutMs)
      .then(
        (verdict) => this.granted(slice, wanted, verdict, askedMs),
        (fault: StoreFault) => this.failed(slice, spent, fault),
      )
      .then(() => {
        slice.asked = undefined
        if (!slice.leaves) return undefined
        slice.leaves = false
        return slice.holds ? this.ask(slice, 0) : undefined
      })
    return slice.asked
  }

  private granted(slice: Slice, wanted: number, verdict: Verdict, askedMs: number): void {
    const { view, at, nowUs, result: held, writtenMs = askedMs, blockedPart } = verdict
    const { limit } = slice.part
    const nowMs = this.clock()
    slice.holds = held > 0
    slice.view = view.slice(at, at + limit.viewSize)
    slice.atUs = nowUs
    slice.seenMs = nowMs
    slice.unseen = slice.spent
    const lastsUs = Math.min(LEASE_US, (limit.leaseEndUs?.(slice.view, 0) ?? Number.POSITIVE_INFINITY) - nowUs)
    slice.endMs = writtenMs + (lastsUs / 1000) * (1 - MARGIN_PART) - MARGIN_MS
    if (blockedPart >= 0) slice.leaves = true
    // What was used while the store was asked is of what it then gave.
    slice.left = slice.leaves ? 0 : Math.max(0, held - slice.spent)
    if (held < Math.min(wanted, LEAST) || blockedPart >= 0) slice.restUntilMs = nowMs + POOR_MS
  }

  /** What may have been done is no longer known: the store ends it, and counts all of it as used. */
  private failed(slice: Slice, spent: number, { notRun }: StoreFault): void {
    slice.restUntilMs = this.clock() + FAULT_MS
    if (notRun && !this.closed) slice.spent += spent
    else slice.forfeit()
  }

  private tendLater(): NodeJS.Timeout {
    return setTimeout(() => this.tend(), TEND_MS).unref()
  }

  private tend(): void {
    const nowMs = this.clock()
    for (const slice of this.slices.values()) {
      if (slice.asked !== undefined) continue
      const wanted = slice.wanted(nowMs)
      if (wanted === 0 && slice.holds) void this.giveBack(slice)
      else if (wanted === 0) this.slices.delete(slice.key)
      else if (slice.holds && slice.restUntilMs <= nowMs) void this.ask(slice, wanted)
    }
    this.timer = this.slices.size > 0 ? this.tendLater() : undefined
  }
}

/** The most units of a limit that are held here. */
function mostOf({ capacity }: Limit): number {
  return Math.floor(capacity / OWN_SHARE)
}

/** Whether units of it can be taken ahead, and are worth it. */
function isLeasable({ accuracy, limit, cost }: Part): boolean {
  if (accuracy !== 'lease' || limit.leases !== true || cost < 1) return false
  return limit.startsEmpty !== true && limit.scope === undefined && mostOf(limit) >= LEAST
}

/** A unit of it: the operation says how many. */
function plain(part: Part): Part {
  return { ...part, cost: 1 }
}
