import type { LibraryFailurePolicy } from './decision.ts'
import type { Limit } from './limit.ts'

/** One limit of a check: which counter, and how much of it. */
export interface Part {
  readonly rule?: string | undefined
  readonly name: string
  readonly limit: Limit
  /** The counter's key without the store's prefix is `space` then `value`: `rule:limit:` and the encoded value. */
  readonly space: string
  readonly value: string
  /** Integer ≥ 0; 0 only asks. */
  readonly cost: number
  /** Of a slot that is taken, renewed or released; the receipt (µs) of a charge that is given back; the longest wait (µs). */
  readonly id?: number | undefined
  /** The instant (µs) of a charge that is given back. */
  readonly chargedUs?: number | undefined
  readonly onStoreFailure: LibraryFailurePolicy
  /** How long it lets wait in line; absent: as long as the caller does. */
  readonly maxWaitMs?: number | undefined
  /** `lease`: units of it may be taken ahead. */
  readonly accuracy?: 'exact' | 'lease' | undefined
  /** How long the key is blocked at the last refusal that its follower of kind `penalty` counts. */
  readonly blockMs?: number | undefined
}

/** One request against all its limits: all are charged or none. No key stands in it twice. */
export interface Check {
  readonly parts: readonly Part[]
  /** Judge only: write nothing, create nothing, extend nothing. */
  readonly peek: boolean
  /** What is done instead of charging the costs. */
  readonly operation?: Operation | undefined
  /** Judged by the way, on keys of their own; they never touch the answer. */
  readonly followers?: readonly Follower[] | undefined
}

/** What can be done other than a plain check. The script's `operations.lua` lists arguments and results. */
export type OperationName =
  | 'take-up-to'
  | 'book'
  | 'reserve'
  | 'refund'
  | 'commit'
  | 'extend'
  | 'release'
  | 'renew'
  | 'reset'
  | 'block'
  | 'unblock'
  | 'leave'
  | 'lease'
  | 'vacate'

export interface Operation {
  readonly name: OperationName
  readonly args: readonly number[]
}

/** A shadow rule, a candidate or a penalty: limits that go by what the enforced ones say. */
export interface Follower {
  readonly kind: 'shadow' | 'candidate' | 'penalty'
  /** The rule that it belongs to. */
  readonly rule: string | undefined
  readonly parts: readonly Part[]
  /**
   * Places (from 0) in the enforced parts. Shadow and candidate are charged where all enforced limits admit but for
   * these, which a candidate takes the place of; a penalty where one of these refuses.
   */
  readonly places: readonly number[]
}

/** A store's answer to one check. */
export interface Verdict {
  readonly allowed: boolean
  /** The store's clock, in µs since the Unix epoch. */
  readonly nowUs: number
  /** The views of the parts in order (see `Limit`), after the charge where there was one. */
  readonly view: readonly number[]
  /** Where in `view` this check's integers begin. */
  readonly at: number
  /** What an operation left; 0 without one. For an operation on keys the view holds one integer for each part. */
  readonly result: number
  /** Which part's key is blocked, and the instant (µs) at which the longest block ends; −1, 0: none is. */
  readonly blockedPart: number
  readonly blockedUs: number
  /** Of a place in line that another gave up: its receipt (µs), and nothing was charged; 0: it is none. */
  readonly receiptUs: number
  /** Of a refusal: nothing can make room before the views say so, but what `watchChanges` tells of. Absent: not known. */
  readonly firm?: boolean
  /** When the store was asked, on `performance.now()`; absent: it is in this process. */
  readonly writtenMs?: number | undefined
  /** In the order of the check's followers. */
  readonly followers?: readonly Verdict[] | undefined
}

/** What kinds of failure a store has, as the metric `headgate_store_errors_total{kind}` names them. */
export type StoreErrorKind =
  | 'timeout'
  | 'connection'
  | 'auth'
  | 'permission'
  | 'loading'
  | 'readonly'
  | 'full'
  | 'busy'
  | 'cluster'
  | 'stale'
  | 'script'
  | 'other'

/** Why a store gave no answer. */
export class StoreFault extends Error {
  readonly kind: StoreErrorKind
  /** True when the command surely did not run, so that sending it again cannot charge twice. */
  readonly notRun: boolean

  constructor(kind: StoreErrorKind, message: string, notRun: boolean, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'StoreFault'
    this.kind = kind
    this.notRun = notRun
  }
}

/** A check on its way through a store; one of `answer` and `fail` is called once, unless its deadline passes first. */
export interface Ticket {
  readonly check: Check
  /** When its caller stops waiting, on `performance.now()`. */
  readonly deadlineMs: number
  /** True once the caller was answered: what is not sent yet need not be sent. */
  readonly settled: boolean
  answer(verdict: Verdict): void
  fail(fault: StoreFault): void
}

/** A store in this process: it answers at once and cannot be away. */
export interface LocalStore {
  readonly kind: 'local'
  /** The verdict's view is valid only until the next call. */
  judge(check: Check): Verdict
  close(): Promise<void>
}

/** @param count how often it happened */
export type StoreReport = (message: string, kind: string, count: number) => void

/** Told of each batch that was answered: how long it took, and how many checks were in it. */
export type RoundTripReport = (durationMs: number, checks: number) => void

/** Told of what ends refusals before their time. */
export interface ChangeListener {
  /**
   * @param key a counter's, without the store's prefix
   * @param recalled whether units of it that were taken ahead are to be given back
   */
  readonly onChange: (key: string, recalled?: boolean) => void
  /** Whether changes are told of from now on; what was known before may be out of date. */
  readonly onLive: (live: boolean) => void
}

/** A store behind a network. */
export interface RemoteStore {
  readonly kind: 'remote'
  /** Takes a check; it leaves in the next batch. A check whose ticket has settled is not sent. */
  submit(ticket: Ticket): void
  /** The store's own verdict. Rejects with a StoreFault when there is none by `deadlineMs`. */
  run(check: Check, deadlineMs: number): Promise<Verdict>
  /**
   * Of a store on several servers: counters of one group are judged in one call; a check or an operation that is handed
   * in is of one group. Absent: all are.
   */
  groupOf?(part: Part): number
  /** Of a store on several servers: the name of the one that keeps the check's counters; '' while nobody does. */
  serverOf?(check: Check): string
  /** The probe, on a counter that the server keeps. undefined: it keeps none any more. */
  probeOf?(server: string, probe: Check): Check | undefined
  /** Tells of what no caller sees: garbage replaced, a promise found void. @returns how to stop */
  watch(report: StoreReport, roundTrip?: RoundTripReport): () => void
  /** Tells of counters on which a refusal, or a lease, may no longer hold, whoever changed them. Absent: nobody does. @returns how to stop */
  watchChanges?(listener: ChangeListener): () => void
  close(): Promise<void>
}

export type Store = LocalStore | RemoteStore
