import type { LimitStatus } from './decision.ts'

/** What a store keeps for one key, decoded. `code` names the algorithm that wrote it. */
export interface State {
  readonly code: number
}

/** The numbers of a {@link LimitStatus}: everything but its names. */
export type LimitNumbers = Omit<LimitStatus, 'rule' | 'name'>

/**
 * An algorithm with numbers: the TypeScript half of what the script does in Redis. Both halves give
 * the same answer to the last unit; the twin tests step them side by side.
 *
 * A limit works on a *view*: `viewSize` integers in a shared array, beginning at `at`, which say
 * how much is used now. The script returns exactly these integers, so everything else in a
 * decision is derived from them here.
 *
 * All instants and spans are integer microseconds; all units are integers; all stay below 2^53.
 */
export interface Limit<S extends State = State> {
  readonly algorithm: string
  /** The algorithm's number in the script and in stored states. */
  readonly code: number
  /** Units a period; of a concurrency limit, units held at once. */
  readonly limit: number
  /** The most units that can be taken at once. */
  readonly capacity: number
  /** 0: the limit has no period. */
  readonly periodUs: number
  /** What the script needs: `code`, then the parameters. Equal arrays mean the same numbers. */
  readonly wire: readonly number[]
  /** How long an exhausted state takes to read as unused, in µs. */
  readonly spanUs: number
  /** How many integers a view has. */
  readonly viewSize: number
  /** How much of the script's time a check of it takes, in checks of a token bucket; absent: 1. */
  readonly weight?: number
  /** `instance`: each process has a budget of its own, in its memory. Absent: all share one. */
  readonly scope?: 'instance'
  /** Counters that nothing is known of count as exhausted since the rule's first use. */
  readonly startsEmpty?: boolean
  /** Whether a place in line is charged at once: its instant is known. */
  readonly books?: boolean
  /** What is taken is held under an id until it is released or lapses. */
  readonly holdsSlots?: boolean
  /** Whether units can be taken ahead: its states can be charged at an instant that is past. */
  readonly leases?: boolean

  /** `wire` at an instant of the store, where the parameters depend on it. */
  wireAt?(nowUs: number): readonly number[]
  /**
   * Writes the view of a state as it is at `nowUs` (undefined: unused); `cost` is what will be asked of it, with what
   * others wait for.
   * Changes nothing else.
   * @returns true when the state must be repaired, also by a refusal: it came from the future, or was
   * written under numbers that would hold its caller for longer than today's
   */
  open(state: S | undefined, nowUs: number, view: number[], at: number, cost: number): boolean
  /** Writes the view for units that another algorithm had counted, at most exhausted. */
  adopt(units: number, nowUs: number, view: number[], at: number): void
  /** Whether the view has room for the cost (≥ 0). */
  admits(view: readonly number[], at: number, cost: number): boolean
  /** Units that the view has room for. */
  room(view: readonly number[], at: number): number
  /** Counts units as used that are not, since others wait for them; below 0 takes that back. */
  withhold(view: number[], at: number, units: number): void
  /**
   * How long until the cost has its place in line, in µs; 0: now, or, of slots, at any time; −1: it has none. Where the
   * limit does not book, it is when there is room if nobody else comes.
   */
  place(view: readonly number[], at: number, nowUs: number, cost: number): number
  /**
   * Divides a place in line that was given up and comes in `aheadUs` (≥ 1), where all but `left` of its units are taken.
   * Absent: the limit does not book.
   */
  divide?(left: number, aheadUs: number): Division
  /** How long whoever was admitted has to wait before it proceeds, in µs. Absent: not at all. */
  delayUs?(view: readonly number[], at: number): number
  /** Whether a state of this algorithm can have been written under these numbers. */
  wrote(state: S): boolean
  /**
   * Makes a view that refuses the cost tell how long: the state behind it goes by other numbers until
   * something is charged, and has room in `waitUs` (≥ 1).
   */
  postpone(view: number[], at: number, nowUs: number, cost: number, waitUs: number): void
  /**
   * Takes the cost, for which there is room or a place in line.
   * @param state what the view was made of, of any algorithm; it may be used again
   * @param id of the slot, where the limit holds slots
   * @returns the state to keep
   */
  take(state: State | undefined, nowUs: number, view: number[], at: number, cost: number, id: number): S
  /** The state to keep for a view when nothing is taken: a repair. The view may be put right too. */
  close(view: number[], at: number, nowUs: number, former?: State): S
  /** The state of a counter that was exhausted at `atUs`. Only where `startsEmpty` can be. */
  exhausted?(atUs: number): S
  /** Of what was just taken: an instant by which it can be given back (see {@link Codec.give}). */
  receiptUs(view: readonly number[], at: number, nowUs: number): number
  /** The instant at which units that were taken ahead are worth nothing any more. Absent: there is none. */
  leaseEndUs?(view: readonly number[], at: number): number
  /** Fills in what a caller is told of a view; `cost` is what was asked (waits are 0 where it fits). */
  tell(view: readonly number[], at: number, nowUs: number, cost: number, status: LimitNumbers): void
  /** The fair share of one of `instances` (≥ 1) processes that no longer share a store. */
  share(instances: number): Limit
}

/** Of a place in line of which a part is taken. */
export interface Division {
  /** Units that are left for others. */
  readonly left: number
  /** How much sooner than all of it what is taken has its turn, and has drained, in µs. */
  readonly soonerUs: number
  readonly lessUs: number
}

/** Whether both have the same numbers. */
export function isSame({ wire }: Limit, { wire: other }: Limit): boolean {
  return wire.length === other.length && wire.every((number, i) => number === other[i])
}

/** How the states of one algorithm are stored, and what they mean to the others. */
export interface Codec<S extends State = State> {
  readonly code: number
  encode(state: S): Buffer
  /** undefined: not a state of this algorithm (garbage). */
  decode(raw: Buffer): S | undefined
  /** Units in use at `nowUs`, rounded up. */
  used(state: S, nowUs: number): number
  /** How long until at most `units` (≥ 0) are in use, in µs; 0 where that is so now. */
  roomAfterUs(state: S, nowUs: number, units: number): number
  /** Whether the state must be repaired: written later than now, or in use for longer than `spanUs`. */
  ahead(state: S, nowUs: number, spanUs: number): boolean
  /** How long from `nowUs` the state means anything, in µs; afterwards it reads as unused. */
  lifetimeUs(state: S, nowUs: number): number
  /**
   * Gives units back: of the charge that the receipt is of, what has not drained yet, and nothing once
   * its window has closed; without a receipt (0) down to unused.
   * @param chargedUs the instant of the charge; only with a receipt
   * @param again whether the rest of the same charge may be given back later
   * @returns how many units came back, rounded to whole ones
   */
  give(state: S, nowUs: number, units: number, receiptUs: number, chargedUs: number, again: boolean): number
  /**
   * Charges units at an instant that may be past, under the state's own numbers; where the state is of a later one, at
   * that. Absent: units of this algorithm cannot be taken ahead.
   */
  spend?(state: S, atUs: number, units: number): void
}
