import { tokenBucket } from './algorithms/token-bucket/index.ts'
import type { Decision } from './decision.ts'
import { DenyCache, type DenyCacheOptions } from './deny-cache.ts'
import { deriveDecision, punishedBy } from './derive.ts'
import { HeadgateError, InvalidArgumentError, StoreUnavailableError, show } from './errors.ts'
import { type EngineEvents, Events } from './events.ts'
import { Door } from './failure/door.ts'
import { Policy } from './failure/policy.ts'
import { Groups } from './groups.ts'
import { Leases } from './lease.ts'
import { type AcquireOptions, standsInLine } from './line.ts'
import {
  type BlockOptions,
  type Grant,
  Operations,
  type RefundOptions,
  type Reservation,
  type Reserved,
  type ReserveOptions,
} from './operations.ts'
import { refuseUnknown } from './options.ts'
import { type CheckItem, judgedOf, partsOf } from './part.ts'
import { isSpecial, Split } from './split.ts'
import type { Check, LocalStore, Operation, Part, RemoteStore, Store, StoreFault, Verdict } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import type { CheckOptions } from './ways.ts'

export interface EngineOptions {
  store: Store
  /** How long a decision may wait for the store, in ms; default 50. */
  timeoutMs?: number
  /** How many processes enforce the same budget: each takes its share while the store is away. Default 1. */
  instances?: number
  /** How refusals are repeated without asking a store behind a network; `false`: never. */
  denyCache?: DenyCacheOptions | false
}

/** Judges limits of several rules as one check. `createLimiter` is a shell over it. */
export interface Engine {
  /** True while decisions are made without the store. */
  readonly degraded: boolean
  /** Units that this process has taken ahead and not used. */
  readonly strandedUnits: number
  /**
   * Charges every limit, or none.
   * @throws InvalidArgumentError (rejected) before anything is charged
   */
  check(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision>
  /** The same answer; nothing is written, created or extended. */
  peek(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision>
  /** Takes as much as all limits can give, at most `most` units (integer ≥ 1); costs of the items are ignored. */
  takeUpTo(items: readonly CheckItem[], most: number, options?: CheckOptions): Promise<Grant>
  /**
   * Waits in line, then charges: resolves when the caller may proceed, or at once with a refusal. Token buckets, leaky
   * buckets and fixed windows book the place in the store; the others keep it by a ticket, and are asked again when there
   * should be room. First come first served across processes.
   */
  acquire(items: readonly CheckItem[], options?: AcquireOptions): Promise<Decision>
  /** Charges, and holds what was charged until it is committed, cancelled or lapses. */
  reserve(items: readonly CheckItem[], options?: ReserveOptions): Promise<Reserved>
  /** The reservation of an id, also one that another process made. */
  reservation(items: readonly CheckItem[], id: string): Reservation
  /**
   * Gives the items' costs back.
   * @returns for each item how many units came back
   * @throws StoreUnavailableError (rejected)
   */
  refund(items: readonly CheckItem[], options?: RefundOptions): Promise<number[]>
  /** Forgets the counters, not a block. Rejects with StoreUnavailableError when the store is gone. */
  reset(items: readonly CheckItem[]): Promise<void>
  /** Refuses everything on these keys, whatever is reset. Rejects with StoreUnavailableError when the store is gone. */
  block(items: readonly CheckItem[], options?: BlockOptions): Promise<void>
  /** @returns whether any of them was blocked. Rejects with StoreUnavailableError when the store is gone */
  unblock(items: readonly CheckItem[]): Promise<boolean>
  /** @returns a function that takes the listener off again */
  on<E extends keyof EngineEvents>(event: E, listener: (payload: EngineEvents[E]) => void): () => void
  /** Leaves no timer behind; never closes the store. */
  close(): Promise<void>
}

/** @throws InvalidArgumentError naming the option */
export function createEngine(options: EngineOptions): Engine {
  return new EngineCore(options)
}

export const DEFAULT_TIMEOUT_MS = 50
const MAX_TIMEOUT_MS = 60_000

/** The most counters of the local share, which only an outage fills: some 70 MB. */
const MAX_LOCAL_KEYS = 250_000

/** Probing takes the whole way, a write included: a server that only answers TIME is of no use. */
const PROBE: Check = {
  parts: [
    {
      name: 'probe',
      limit: tokenBucket({ limit: 1_000_000, period: '1s' }),
      space: '~:',
      value: 'probe',
      cost: 1,
      onStoreFailure: 'open',
    },
  ],
  peek: false,
}

/** The engine, with the entry that `createLimiter` uses to skip what it has already validated. */
export class EngineCore implements Engine {
  private readonly store: Store
  private readonly timeoutMs: number
  private readonly door: Door | undefined
  /** Repeats what the store refused. */
  private readonly denied: DenyCache | undefined
  /** Admits from what the store gave ahead. */
  private readonly leases: Leases | undefined
  /** Decides while a remote store is away. */
  private readonly local = memoryStore({ maxKeys: MAX_LOCAL_KEYS })
  private policy: Policy | undefined
  /** What is kept in this process although the store is shared, and slots. */
  private readonly split: Split
  /** Where the store has its counters on several servers. */
  private readonly groups: Groups | undefined
  readonly operations: Operations
  private readonly events = new Events()
  private unwatch: (() => void) | undefined
  private readonly unwatchChanges: (() => void) | undefined
  private closed = false

  constructor(options: EngineOptions) {
    refuseUnknown(options, ['store', 'timeoutMs', 'instances', 'denyCache'], 'createEngine')
    const { store, timeoutMs = DEFAULT_TIMEOUT_MS, instances = 1, denyCache } = options
    if (store?.kind !== 'local' && store?.kind !== 'remote') {
      throw new InvalidArgumentError('store', `${show(store)} is not a store; use memoryStore() or redisStore(client)`)
    }
    if (typeof timeoutMs !== 'number' || !(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS)) {
      throw new InvalidArgumentError(
        'timeoutMs',
        `${show(timeoutMs)} is not a number of ms from 1 to ${MAX_TIMEOUT_MS}`,
      )
    }
    if (!Number.isSafeInteger(instances) || instances < 1 || instances > 100_000) {
      throw new InvalidArgumentError('instances', `${show(instances)} is not an integer from 1 to 100000`)
    }
    this.store = store
    this.timeoutMs = timeoutMs
    const denied = denyCache === false ? undefined : new DenyCache(denyCache)
    if (store.kind === 'remote') {
      this.door = this.openDoor(store, instances)
      if (denied !== undefined) this.denied = denied
      this.leases = new Leases(store, timeoutMs)
      this.unwatchChanges = denied && store.watchChanges?.(denied.listener)
    }
    this.split = new Split((check, where) => this.operate(check, where))
    const lost = ({ message }: Error) =>
      this.events.report('error', { message: `a charge was not given back: ${message}`, kind: 'give-back', count: 1 })
    if (store.kind === 'remote' && store.groupOf !== undefined)
      this.groups = new Groups(store, (check, where) => this.operateShared(check, where), lost)
    this.operations = new Operations(this)
  }

  get degraded(): boolean {
    return this.door?.degraded ?? false
  }

  get strandedUnits(): number {
    return this.leases?.stranded ?? 0
  }

  check(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision> {
    return this.checked(items, false, options)
  }

  peek(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision> {
    return this.checked(items, true, options)
  }

  takeUpTo(items: readonly CheckItem[], most: number, options?: CheckOptions): Promise<Grant> {
    return promised(() => this.operations.takeUpTo(partsOf(items), most, options))
  }

  acquire(items: readonly CheckItem[], options?: AcquireOptions): Promise<Decision> {
    return promised(() => this.operations.acquire(judgedOf(items), options))
  }

  reserve(items: readonly CheckItem[], options?: ReserveOptions): Promise<Reserved> {
    return promised(() => this.operations.reserve(judgedOf(items), options))
  }

  reservation(items: readonly CheckItem[], id: string): Reservation {
    return this.operations.reservation(partsOf(items), id)
  }

  refund(items: readonly CheckItem[], options?: RefundOptions): Promise<number[]> {
    return promised(() => this.operations.refund(partsOf(items), options, items.map(isWhole)))
  }

  reset(items: readonly CheckItem[]): Promise<void> {
    return promised(() => this.operations.reset(partsOf(items)))
  }

  block(items: readonly CheckItem[], options?: BlockOptions): Promise<void> {
    return promised(() => this.operations.block(partsOf(items), options))
  }

  unblock(items: readonly CheckItem[]): Promise<boolean> {
    return promised(() => this.operations.unblock(partsOf(items)))
  }

  on<E extends keyof EngineEvents>(event: E, listener: (payload: EngineEvents[E]) => void): () => void {
    return this.events.on(event, listener)
  }

  async close(): Promise<void> {
    this.closed = true
    await Promise.all([this.operations.close(), this.leases?.close()])
    this.door?.close()
    this.unwatch?.()
    this.unwatchChanges?.()
    this.events.close()
    await this.split.close()
    await this.local.close()
  }

  /** Judges what is known to be valid. */
  run(check: Check, options?: CheckOptions): Promise<Decision> {
    let decided: Promise<Decision>
    try {
      const signal = signalOf(options)
      if (this.closed) throw closedError()
      if (signal?.aborted) throw signal.reason
      decided = this.decide(check, signal)
      if (check.followers !== undefined) decided = this.punishing(decided, check)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.events.decisionsWanted ? this.reported(decided, check) : decided
  }

  /** An operation on keys, where they are kept. @throws StoreUnavailableError (rejected) */
  async operate(check: Check, where: 'store' | 'local' = 'store'): Promise<number[]> {
    // Places of those who wait are given back while it closes.
    if (this.closed && !this.operations.givesBack) throw closedError()
    const done = await this.split.operate(check, (shared) => {
      if (where === 'store' && this.groups?.isSpread(shared))
        return this.groups.operate(shared, (each) => this.operateShared(each, where))
      return this.operateShared(shared, where)
    })
    if (check.operation?.name === 'release') this.operations.released(check.parts)
    return done
  }

  private async operateShared(check: Check, where: 'store' | 'local'): Promise<number[]> {
    if (where === 'local' && this.policy !== undefined) return settled(this.policy, check)
    if (this.store.kind === 'local') return results(check, this.store.judge(check))
    try {
      this.denied?.doubt(check)
      // Without a pause where there is none to make: what is asked in the same turn comes in the same order.
      const back = this.leases?.yield(check)
      if (back !== undefined) await back
      return results(check, await this.store.run(check, performance.now() + this.timeoutMs))
    } catch (error) {
      const { name } = check.operation as Operation
      const { message, notRun } = error as StoreFault
      const what = notRun ? 'nothing was changed' : 'it was not confirmed, and may have been done all the same'
      throw new StoreUnavailableError(`${name}: ${what}: ${message}`, { cause: error })
    } finally {
      this.denied?.doubt(check)
    }
  }

  private decide(check: Check, signal?: AbortSignal): Promise<Decision> {
    if (check.parts.some(isSpecial)) return this.split.decide(check, (shared) => this.decideShared(shared, signal))
    return this.decideShared(check, signal)
  }

  private decideShared(check: Check, signal?: AbortSignal): Promise<Decision> {
    const { door } = this
    if (door === undefined)
      return Promise.resolve(deriveDecision(check, (this.store as LocalStore).judge(check), 'store', false))
    // Also where the store is away: what was taken before is ours.
    const leased = this.leases?.find(check)
    if (leased !== undefined) return Promise.resolve(leased)
    const deadlineMs = performance.now() + this.timeoutMs
    const ask = (each: Check) => {
      // Without the store the limits' policies decide, not what it said before.
      const denied = door.degraded ? undefined : this.denied?.find(each)
      return denied === undefined ? door.decide(each, deadlineMs, signal) : Promise.resolve(denied)
    }
    return this.groups?.isSpread(check) ? this.groups.decide(check, ask) : ask(check)
  }

  /** Blocks the keys whose refusals were one too many; where the store is away by then, the next refusal does. */
  private async punishing(decided: Promise<Decision>, { parts }: Check): Promise<Decision> {
    const decision = await decided
    for (const { parts: counted, places } of punishedBy(decision) ?? []) {
      const durationUs = Math.ceil((counted[0]?.blockMs ?? 0) * 1000)
      const operation: Operation = { name: 'block', args: [durationUs] }
      const blocked = places.map((place) => parts[place] as Part)
      await this.operate({ parts: blocked, peek: false, operation }).catch(() => undefined)
    }
    return decision
  }

  private checked(items: readonly CheckItem[], peek: boolean, options?: CheckOptions): Promise<Decision> {
    let check: Check
    try {
      check = { ...judgedOf(items), peek }
    } catch (error) {
      return Promise.reject(error)
    }
    return this.run(check, options)
  }

  private async reported(decided: Promise<Decision>, { parts, peek }: Check): Promise<Decision> {
    const decision = await decided
    // Who stands in line is neither admitted nor refused yet.
    if (!standsInLine(decision)) this.events.report('decision', { decision, items: parts, peek })
    return decision
  }

  private openDoor(store: RemoteStore, instances: number): Door {
    this.unwatch = store.watch(
      (message, kind, count) => this.events.report('error', { message, kind, count }),
      (durationMs, checks) => this.events.report('roundTrip', { durationMs, checks }),
    )
    this.policy = new Policy(this.local, instances)
    return new Door({
      store,
      policy: this.policy,
      timeoutMs: this.timeoutMs,
      probe: PROBE,
      onDegraded: (fault) => this.events.report('degraded', { reason: fault.message, kind: fault.kind }),
      onVerdict: (check, verdict) => this.denied?.keep(check, verdict),
      onRecovered: (awayMs) => this.events.report('recovered', { awayMs }),
      onFault: (fault, count) => this.events.report('error', { message: fault.message, kind: fault.kind, count }),
    })
  }
}

/** What throws before anything is asked rejects, like what fails later. */
async function promised<T>(start: () => Promise<T> | T): Promise<T> {
  return start()
}

/** Whether no cost is named: with a receipt that is all that it is of. */
function isWhole({ cost }: CheckItem): boolean {
  return cost === undefined
}

/** What was decided without the store is settled without it; what only a policy let pass was never charged. */
function settled(policy: Policy, check: Check): number[] {
  const parts = check.parts.filter(({ onStoreFailure }) => onStoreFailure === 'local')
  const ofShares = parts.length === 0 ? [] : results({ ...check, parts }, policy.settle({ ...check, parts }))
  const { name } = check.operation as Operation
  const uncharged = name === 'extend' || name === 'release' || name === 'renew' ? 1 : 0
  return check.parts.map(({ onStoreFailure }) =>
    onStoreFailure === 'local' ? (ofShares.shift() as number) : uncharged,
  )
}

/** One integer for each part of an operation on keys. */
function results(check: Check, { view, at }: Verdict): number[] {
  return view.slice(at, at + check.parts.length)
}

function signalOf(options: CheckOptions | undefined): AbortSignal | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError('options', `${show(options)} is not an object; a cost is given as { cost: 5 }`)
  }
  const { signal } = options
  if (signal === undefined || typeof signal?.addEventListener === 'function') return signal
  throw new InvalidArgumentError('signal', `${show(signal)} is not an AbortSignal`)
}

function closedError(): HeadgateError {
  return new HeadgateError('HEADGATE_CLOSED', 'the limiter was closed; make a new one')
}
