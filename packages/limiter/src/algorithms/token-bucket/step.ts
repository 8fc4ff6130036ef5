import { ceilDiv, MAX_EXACT, mulDivCeil } from '../exact.ts'

/**
 * The token bucket's arithmetic, as the level of what is used. `token-bucket.lua` is its twin:
 * same names, same order, same numbered steps.
 *
 * A unit is `grain` parts; a microsecond gives `rate` parts back; a bucket is exhausted at
 * burst × grain parts. (A leaky bucket as a meter, ITU-T I.371; exact because all is integer.)
 */

export interface BucketState {
  readonly code: number
  /** Parts in use at `atUs`. */
  level: number
  atUs: number
  /** The rate that the state was written under. */
  rate: number
  grain: number
  /** Parts that are booked beyond a full bucket at `atUs`. */
  ahead: number
  /** What giving back leaves behind (see `giving-back.ts`); absent: nothing was given back. */
  given?: number[] | undefined
}

/** Parts still in use at `nowUs`, under the state's own rate. */
export function drain(state: BucketState, nowUs: number): number {
  // 1. an instant in the future gives nothing back
  const elapsed = nowUs > state.atUs ? nowUs - state.atUs : 0
  // 2. the product may be rounded only where it is beyond any level
  const drained = elapsed * state.rate
  // 3. never below unused
  return drained >= state.level ? 0 : state.level - drained
}

/** A level under one grain as a level under another, rounded up, at most `most`. */
export function regrain(level: number, from: number, to: number, most: number): number {
  // 1. the same grain keeps the level
  if (from === to) return level < most ? level : most
  // 2. whole units, as many as can matter
  const rest = level % from
  const units = (level - rest) / from
  if (units * to >= most) return most
  // 3. the broken unit
  const regrained = units * to + mulDivCeil(rest, to, from)
  return regrained < most ? regrained : most
}

/** Units in use, rounded up. */
export function unitsUsed(state: BucketState, nowUs: number): number {
  return ceilDiv(drain(state, nowUs), state.grain)
}

/** How long from `nowUs` until nothing is in use, in µs. */
export function drainedAfter(state: BucketState, nowUs: number): number {
  return ceilDiv(drain(state, nowUs), state.rate)
}

/** Parts that are still booked beyond a full bucket, when `level` is left of the state's. */
export function aheadLeft(state: BucketState, level: number): number {
  const left = state.ahead - (state.level - level)
  return left > 0 ? left : 0
}

/** Charges units at an instant that may be past. */
export function spend(state: BucketState, atUs: number, units: number): void {
  // 1. what has drained by then; nothing is charged before the state's own instant
  const sinceUs = atUs > state.atUs ? atUs : state.atUs
  const left = drain(state, sinceUs)
  const ahead = aheadLeft(state, left)
  // 2. on top of it; behind what is booked, where something is
  const level = left + units * state.grain
  state.level = level < MAX_EXACT ? level : MAX_EXACT
  state.atUs = sinceUs
  state.ahead = ahead > 0 ? ahead + (state.level - left) : 0
}
