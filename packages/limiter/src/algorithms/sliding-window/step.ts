import { ceilDiv, MAX_EXACT, mulDivCeil } from '../exact.ts'
import { MAX_TOTAL } from './params.ts'

/**
 * The sliding window's arithmetic. `sliding-window.lua` is its twin: same names, same order, same
 * numbered steps.
 *
 * Slice k is the µs from k·d up to (k+1)·d. A unit of instant t is in the window until t + P; so the last of a slice
 * lapses at (k+1)·d − 1 + P, and from k·d + P on the slice is in the window by a part only.
 */

export interface WindowState {
  readonly code: number
  /** The numbers that the state was written under. */
  periodUs: number
  sliceUs: number
  /** The instant of the newest charge. */
  atUs: number
  /** Units by slice, oldest first; the last is the one that `atUs` lies in. */
  counts: number[]
}

/** What of a limit decides how its window is cut. */
export interface Cut {
  readonly limit: number
  readonly periodUs: number
  readonly sliceUs: number
  readonly strict: boolean
}

/** ⌈a · b / c⌉ for integers 0 ≤ a ≤ c, c ≤ 2^51, b ≤ 2^51. */
export function portion(a: number, b: number, c: number): number {
  const product = a * b
  if (product <= MAX_EXACT) return ceilDiv(product, c)
  return a === c ? b : mulDivCeil(a, b, c)
}

/** The oldest slice that still lies in the window at `nowUs`, at least with its last µs. */
export function oldestSlice(periodUs: number, sliceUs: number, nowUs: number): number {
  return Math.floor((nowUs - periodUs + 1) / sliceUs)
}

/** The instant at which all of a slice has lapsed. */
export function lapseOf({ periodUs, sliceUs }: Pick<Cut, 'periodUs' | 'sliceUs'>, slice: number): number {
  return (slice + 1) * sliceUs - 1 + periodUs
}

/** The counts of the window at `nowUs`: of each slice from its oldest to the one that now lies in. */
export function lay(cut: Cut, state: WindowState | undefined, nowUs: number): number[] {
  // 1. the slices that the window overlaps
  const oldest = oldestSlice(cut.periodUs, cut.sliceUs, nowUs)
  const size = Math.floor(nowUs / cut.sliceUs) - oldest + 1
  const counts: number[] = []
  for (let i = 0; i < size; i++) counts.push(0)
  if (state === undefined) return counts
  // 2. what is from the future moves to now
  const atUs = state.atUs < nowUs ? state.atUs : nowUs
  const first = Math.floor(atUs / state.sliceUs) - state.counts.length + 1
  const same = state.periodUs === cut.periodUs && state.sliceUs === cut.sliceUs
  for (let i = 0; i < state.counts.length; i++) {
    const count = state.counts[i] as number
    if (count > 0) {
      const slice = same ? first + i : recut(cut, state, first + i, atUs)
      const place = slice - oldest
      if (place >= 0) counts[place] = (counts[place] as number) + count
    }
  }
  // 3. ... and is at most an exhausted window
  if (state.atUs > nowUs) {
    let left = cut.limit
    for (let i = size - 1; i >= 0; i--) {
      if ((counts[i] as number) > left) counts[i] = left
      left -= counts[i] as number
    }
  }
  return counts
}

/** Where a slice of other numbers goes: where its newest unit is, unless that would lapse later than it did. */
function recut(cut: Cut, state: WindowState, slice: number, atUs: number): number {
  const endUs = (slice + 1) * state.sliceUs
  const newestUs = endUs - 1 < atUs ? endUs - 1 : atUs
  const own = Math.floor(newestUs / cut.sliceUs)
  const latest = Math.floor((endUs + state.periodUs - cut.periodUs) / cut.sliceUs) - 1
  return own < latest ? own : latest
}

/** Units in use: the whole slices, and the part of the oldest one that has not lapsed, rounded up. */
export function usedOf(cut: Cut, counts: readonly number[], nowUs: number): number {
  let used = 0
  for (const count of counts) used += count
  if (cut.strict) return used
  const first = Math.floor(nowUs / cut.sliceUs) - counts.length + 1
  const part = lapseOf(cut, first) - nowUs
  const oldest = counts[0] as number
  return part < cut.sliceUs ? used - oldest + portion(part, oldest, cut.sliceUs) : used
}

/** The instant at which at most `room` units are in use if nobody comes; 0: that is so now. */
export function fitsAt(cut: Cut, counts: readonly number[], nowUs: number, room: number): number {
  const { periodUs, sliceUs, strict } = cut
  const newest = Math.floor(nowUs / sliceUs)
  let newer = 0
  for (let i = counts.length - 1; i >= 0; i--) {
    const count = counts[i] as number
    if (newer + count > room) {
      // Slices lapse one after the other: all older ones have before this one begins to.
      const slice = newest - counts.length + 1 + i
      const part = strict ? sliceUs : portion(newer + count - room, sliceUs, count)
      const atUs = slice * sliceUs - 1 + periodUs + part
      return atUs > nowUs ? atUs : 0
    }
    newer += count
  }
  return 0
}

/** The instant at which nothing is in use any more; 0: nothing is. */
export function emptyAt(cut: Pick<Cut, 'periodUs' | 'sliceUs'>, counts: readonly number[], newest: number): number {
  for (let i = counts.length - 1; i >= 0; i--) {
    if ((counts[i] as number) > 0) return lapseOf(cut, newest - counts.length + 1 + i)
  }
  return 0
}

/** The counts to keep: without empty slices before the first that is not, and no more than can be parted exactly. */
export function kept(counts: readonly number[]): number[] {
  let from = 0
  while (from < counts.length - 1 && counts[from] === 0) from += 1
  const rest = counts.slice(from)
  let total = 0
  for (const count of rest) total += count
  // Only the slice that lapses can be of so many, and none of today's limits has written that.
  if (total > MAX_TOTAL) rest[0] = (rest[0] as number) - (total - MAX_TOTAL)
  return rest
}
