import { ceilDiv, mulDivCeil } from '../exact.ts'

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
  /** What {@link remember} keeps; absent: no receipt says more than is true. */
  given?: readonly number[] | undefined
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

/** How many instants of giving back are told apart. */
export const MAX_GIVEN = 4

/**
 * Remembers that what by its receipt drains until `sinceUs` has drained by `endUs`: something beneath it was given back,
 * or drains faster now. Kept as pairs of the two, both ascending.
 */
export function remember(
  given: readonly number[] | undefined,
  nowUs: number,
  sinceUs: number,
  endUs: number,
): readonly number[] | undefined {
  // 1. what no receipt can name any more is forgotten
  const pairs = (given ?? []).slice()
  while (pairs.length > 0 && (pairs[0] as number) <= nowUs) pairs.splice(0, 2)
  // 2. what would have drained later has drained by then too
  let latest = sinceUs
  while (pairs.length > 0 && (pairs[pairs.length - 1] as number) >= endUs) {
    latest = Math.max(latest, pairs[pairs.length - 2] as number)
    pairs.length -= 2
  }
  // 3. what is told already need not be told again
  const told = pairs.length > 0 && (pairs[pairs.length - 2] as number) >= latest
  if (!told && latest > endUs && latest > nowUs) pairs.push(latest, endUs)
  // 4. of too many, the earlier end stands for the first two
  if (pairs.length > 2 * MAX_GIVEN) pairs.splice(1, 2)
  return pairs.length > 0 ? pairs : undefined
}

/** When the charge of a receipt has drained. */
export function drainedBy(given: readonly number[] | undefined, receiptUs: number): number {
  if (given !== undefined) {
    for (let i = 0; i < given.length; i += 2) {
      if ((given[i] as number) >= receiptUs) return Math.min(receiptUs, given[i + 1] as number)
    }
  }
  return receiptUs
}
