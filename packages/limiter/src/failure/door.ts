import type { Decision } from '../decision.ts'
import { deriveDecision } from '../derive.ts'
import { type Check, type RemoteStore, type StoreErrorKind, StoreFault, type Ticket, type Verdict } from '../store.ts'
import { Breaker } from './breaker.ts'
import { Deadlines, type Due } from './deadlines.ts'
import type { Policy } from './policy.ts'
import { Reports } from './reports.ts'

export interface DoorOptions {
  store: RemoteStore
  policy: Policy
  timeoutMs: number
  /** What is asked to find out whether the store is back. */
  probe: Check
  onDegraded(fault: StoreFault): void
  onRecovered(awayMs: number): void
  /** The store decided; a caller may still wait, or not. */
  onVerdict?(check: Check, verdict: Verdict): void
  /** At most once a second for each kind of fault; `decisions`: how many it touched. */
  onFault(fault: StoreFault, decisions: number): void
}

/** Consecutive failures after which nobody waits for the store any more. */
const THRESHOLD = 5
/** Faults after which it would be idle to wait for more: the server is not there, or not for us. */
const DECISIVE: ReadonlySet<StoreErrorKind> = new Set(['connection', 'auth', 'permission', 'loading', 'readonly'])
const FIRST_PROBE_MS = 50
const LAST_PROBE_MS = 250

/**
 * The one door to a store that can be away: every decision behind it ends by its deadline. What the
 * deadline, the breaker and late answers mean is written here and nowhere else.
 */
export class Door {
  private readonly options: DoorOptions
  private readonly deadlines = new Deadlines<Pending>((due, late) => this.expire(due, late))
  /** One for each server of the store; a single server has none of a name. */
  private readonly breakers = new Map<string, Breaker>()
  private openBreakers = 0
  private readonly reports: Reports

  constructor(options: DoorOptions) {
    this.options = options
    this.reports = new Reports(options.onFault)
  }

  get degraded(): boolean {
    return this.openBreakers > 0
  }

  /**
   * Decides by `deadlineMs` (on `performance.now()`; calls come in the order of their deadlines).
   * Rejects only with StoreUnavailableError where a policy says `throw`, or with the signal's reason.
   */
  decide(check: Check, deadlineMs: number, signal?: AbortSignal): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const breaker = this.breakerOf(check)
      const pending = new Pending(this, breaker, check, deadlineMs, resolve, reject)
      if (breaker.reason !== undefined) {
        pending.settled = true
        this.without(pending, breaker.reason)
        return
      }
      this.deadlines.add(pending)
      if (signal !== undefined) pending.watch(signal)
      this.options.store.submit(pending)
    })
  }

  /** Everything that still waits is decided without the store. */
  close(): void {
    for (const breaker of this.breakers.values()) breaker.close()
    const fault = new StoreFault('other', 'the limiter was closed', false)
    for (const pending of this.deadlines.close()) {
      pending.settled = true
      this.without(pending, fault)
    }
    this.reports.close()
  }

  decided(check: Check, verdict: Verdict): void {
    this.options.onVerdict?.(check, verdict)
  }

  /** The store answered a check whose caller still waits. */
  answered(pending: Pending): void {
    this.deadlines.remove(pending)
    pending.breaker.success()
  }

  failed(pending: Pending, fault: StoreFault): void {
    this.deadlines.remove(pending)
    this.without(pending, fault)
    this.blame(pending.breaker, fault, 1)
  }

  aborted(pending: Pending): void {
    this.deadlines.remove(pending)
  }

  private expire(due: Pending[], late: boolean): void {
    const fault = new StoreFault('timeout', `no answer from the store within ${this.options.timeoutMs} ms`, false)
    for (const pending of due) {
      pending.settled = true
      this.without(pending, fault)
    }
    if (late) return
    for (const breaker of new Set(due.map(({ breaker }) => breaker))) {
      this.blame(breaker, fault, due.filter((pending) => pending.breaker === breaker).length)
    }
  }

  private blame(breaker: Breaker, fault: StoreFault, decisions: number): void {
    this.reports.add(fault, decisions)
    breaker.failure(fault, DECISIVE.has(fault.kind))
  }

  private breakerOf(check: Check): Breaker {
    const server = this.options.store.serverOf?.(check) ?? ''
    return this.breakers.get(server) ?? this.makeBreaker(server)
  }

  private makeBreaker(server: string): Breaker {
    const { store, timeoutMs, probe, onDegraded, onRecovered } = this.options
    for (const [name, { reason }] of this.breakers) {
      // Servers come and go.
      if (reason === undefined && store.probeOf?.(name, probe) === undefined) this.breakers.delete(name)
    }
    const breaker = new Breaker({
      threshold: THRESHOLD,
      firstProbeMs: FIRST_PROBE_MS,
      lastProbeMs: LAST_PROBE_MS,
      probe: async () => {
        const asked = store.probeOf === undefined ? probe : store.probeOf(server, probe)
        // A server that keeps nothing any more is in nobody's way.
        if (asked !== undefined) await store.run(asked, performance.now() + timeoutMs)
        else this.breakers.delete(server)
      },
      onOpen: (fault) => {
        this.openBreakers += 1
        if (this.openBreakers === 1) onDegraded(fault)
      },
      onClose: (awayMs) => {
        this.openBreakers -= 1
        if (this.openBreakers === 0) onRecovered(awayMs)
      },
    })
    this.breakers.set(server, breaker)
    return breaker
  }

  private without(pending: Pending, fault: StoreFault): void {
    try {
      pending.end(this.options.policy.decide(pending.check, fault))
    } catch (error) {
      pending.abandon(error)
    }
  }
}

/** A caller that waits. The first of answer, fault, deadline and abort settles it; the rest is late. */
class Pending implements Ticket, Due {
  settled = false
  previous: Due | undefined = undefined
  next: Due | undefined = undefined
  readonly check: Check
  readonly deadlineMs: number
  /** Of the server that keeps its counters. */
  readonly breaker: Breaker
  private readonly door: Door
  private readonly resolve: (decision: Decision) => void
  private readonly reject: (error: unknown) => void
  private unwatch: (() => void) | undefined

  constructor(
    door: Door,
    breaker: Breaker,
    check: Check,
    deadlineMs: number,
    resolve: (decision: Decision) => void,
    reject: (error: unknown) => void,
  ) {
    this.door = door
    this.breaker = breaker
    this.check = check
    this.deadlineMs = deadlineMs
    this.resolve = resolve
    this.reject = reject
  }

  answer(verdict: Verdict): void {
    this.door.decided(this.check, verdict)
    // A batch carries the instant after which it must not run, so a late answer is one that ran in
    // time and lay on its way back: its caller was decided here, and the charge in the store stands.
    if (this.settled) return
    this.settled = true
    this.door.answered(this)
    this.end(deriveDecision(this.check, verdict, 'store', false))
  }

  fail(fault: StoreFault): void {
    if (this.settled) return
    this.settled = true
    this.door.failed(this, fault)
  }

  watch(signal: AbortSignal): void {
    const abort = () => {
      if (this.settled) return
      this.settled = true
      this.door.aborted(this)
      this.abandon(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    this.unwatch = () => signal.removeEventListener('abort', abort)
  }

  end(decision: Decision): void {
    this.unwatch?.()
    this.resolve(decision)
  }

  abandon(error: unknown): void {
    this.unwatch?.()
    this.reject(error)
  }
}
