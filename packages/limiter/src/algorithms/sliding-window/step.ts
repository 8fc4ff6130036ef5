import { ceilDiv, MAX_EXACT, mulDivCeil } from '../exact.ts'
import { MAX_TOTAL } from './params.ts'

/**
 * The sliding window's arithmetic. `sliding-window.lua` is its twin: same names, same order, same
 * numbered steps.
 *
 * Slice k is the µs from k·d up to (k+1)·d. A unit of instant t is in the window until t + P; so the last of a slice
 * lapses at (k+1)·d − 1 + P, and from k·d + P on the slice is in the window by a part only.
 */

/** What was charged under the same cut. */
export interface Segment {
  readonly periodUs: number
  readonly sliceUs: number
  /** The instant of the newest charge. */
  readonly atUs: number
  /** Units by slice, oldest first; the last is the one that `atUs` lies in. */
  readonly counts: number[]
}

export interface WindowState {
  readonly code: number
  /** With the newest charge. */
  newest: Segment
  /** What was charged under another cut: it lapses as it would have. */
  other: Segment | undefined
}

/** Into what a period is cut. */
type Slices = Pick<Segment, 'periodUs' | 'sliceUs'>

/** What of a limit decides how its window is counted. */
export interface Cut extends Slices {
  readonly limit: number
  readonly strict: boolean
}

/** A state as a limit sees it: the counts of its own cut at an instant, and what goes by another. */
export interface Laid {
  /** Of each slice, from the oldest in the window to the one that now lies in. */
  readonly counts: number[]
  readonly other: Segment | undefined
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
export function lapseOf({ periodUs, sliceUs }: Slices, slice: number): number {
  return (slice + 1) * sliceUs - 1 + periodUs
}

/** The slice of a segment's first count. */
export function firstSlice({ sliceUs, atUs, counts }: Segment): number {
  return Math.floor(atUs / sliceUs) - counts.length + 1
}

/** The latest instant that a unit of its count can be of. */
function newestIn(segment: Segment, i: number): number {
  const lastUs = (firstSlice(segment) + i + 1) * segment.sliceUs - 1
  return lastUs < segment.atUs ? lastUs : segment.atUs
}

/** The instant at which nothing of a segment is in use any more; 0: nothing ever was. */
export function emptyAt(segment: Segment): number {
  const { counts } = segment
  for (let i = counts.length - 1; i >= 0; i--) {
    if ((counts[i] as number) > 0) return lapseOf(segment, firstSlice(segment) + i)
  }
  return 0
}

function sum(counts: readonly number[]): number {
  let total = 0
  for (const count of counts) total += count
  return total
}

/** A segment without the slices that have lapsed, and none of it in the future; undefined: nothing is left. */
export function live(segment: Segment | undefined, nowUs: number): Segment | undefined {
  if (segment === undefined) return undefined
  const { periodUs, sliceUs, counts } = segment
  const now = { periodUs, sliceUs, atUs: segment.atUs < nowUs ? segment.atUs : nowUs, counts }
  if (emptyAt(now) <= nowUs) return undefined
  const lapsed = oldestSlice(periodUs, sliceUs, nowUs) - firstSlice(now)
  return lapsed > 0 ? { ...now, counts: counts.slice(lapsed) } : now
}

function isCut(segment: Segment, { periodUs, sliceUs }: Slices): boolean {
  return segment.periodUs === periodUs && segment.sliceUs === sliceUs
}

/** The window of a state at `nowUs`. */
export function lay(cut: Cut, state: WindowState | undefined, nowUs: number): Laid {
  // 1. the slices that the window overlaps
  const oldest = oldestSlice(cut.periodUs, cut.sliceUs, nowUs)
  const size = Math.floor(nowUs / cut.sliceUs) - oldest + 1
  const counts: number[] = []
  for (let i = 0; i < size; i++) counts.push(0)
  if (state === undefined) return { counts, other: undefined }
  // 2. what goes by this cut, or would go by another for longer than an exhausted window of today
  let newest = place(cut, counts, oldest, live(state.newest, nowUs), nowUs)
  let other = place(cut, counts, oldest, live(state.other, nowUs), nowUs)
  // 3. a third cut joins the second
  if (newest !== undefined && other !== undefined) newest = joined(newest, other)
  other = newest ?? other
  // 4. what was from the future is at most an exhausted window
  if (isFuture(state, nowUs)) {
    const left = atMost(counts, cut.limit)
    if (other !== undefined) {
      other = { ...other, counts: other.counts.slice() }
      atMost(other.counts, left)
      if (emptyAt(other) === 0) other = undefined
    }
  }
  return { counts, other }
}

/** Adds a segment to the counts, by where its newest units are. @returns the segment that is still to be counted */
function place(
  cut: Cut,
  counts: number[],
  oldest: number,
  segment: Segment | undefined,
  nowUs: number,
): Segment | undefined {
  if (segment === undefined) return undefined
  const same = isCut(segment, cut)
  if (!same && emptyAt(segment) <= nowUs + cut.periodUs + cut.sliceUs - 1) return segment
  const first = firstSlice(segment)
  for (let i = 0; i < segment.counts.length; i++) {
    const slice = same ? first + i : Math.floor(newestIn(segment, i) / cut.sliceUs)
    if (slice >= oldest) counts[slice - oldest] = (counts[slice - oldest] as number) + (segment.counts[i] as number)
  }
  return undefined
}

/** Adds a segment to another, by where its newest units are. */
function joined(into: Segment, segment: Segment): Segment {
  const counts = into.counts.slice()
  const first = firstSlice(into)
  for (let i = 0; i < segment.counts.length; i++) {
    let to = Math.floor(newestIn(segment, i) / into.sliceUs) - first
    if (to >= counts.length) to = counts.length - 1
    if (to < 0) to = 0
    counts[to] = (counts[to] as number) + (segment.counts[i] as number)
  }
  return { ...into, counts }
}

/** Whether anything was charged later than now. */
export function isFuture({ newest, other }: WindowState, nowUs: number): boolean {
  return newest.atUs > nowUs || (other !== undefined && other.atUs > nowUs)
}

/** Takes the oldest units that are too many. @returns how many more there may be */
function atMost(counts: number[], most: number): number {
  let left = most
  for (let i = counts.length - 1; i >= 0; i--) {
    if ((counts[i] as number) > left) counts[i] = left
    left -= counts[i] as number
  }
  return left
}

/** Units in use: the whole slices, and the part of the oldest one that has not lapsed, rounded up. */
export function usedOf(cut: Cut, { counts, other }: Laid, nowUs: number): number {
  const used = sum(counts) + (other === undefined ? 0 : sum(other.counts))
  if (cut.strict) return used
  const first = Math.floor(nowUs / cut.sliceUs) - counts.length + 1
  const part = lapseOf(cut, first) - nowUs
  const oldest = counts[0] as number
  return part < cut.sliceUs ? used - oldest + portion(part, oldest, cut.sliceUs) : used
}

/** The instant at which at most `room` units are in use if nobody comes; 0: that is so now. */
export function fitsAt(cut: Cut, { counts, other }: Laid, nowUs: number, room: number): number {
  if (other === undefined) return ownFitsAt(cut, counts, nowUs, room)
  // As each slice of the other cut lapses, there is more room for its own.
  let rest = sum(other.counts)
  let fromUs = 0
  let earliest = MAX_EXACT
  for (let i = 0; i <= other.counts.length; i++) {
    if (rest <= room) {
      const ownUs = ownFitsAt(cut, counts, nowUs, room - rest)
      const atUs = ownUs > fromUs ? ownUs : fromUs
      if (atUs < earliest) earliest = atUs
    }
    if (i < other.counts.length) {
      rest -= other.counts[i] as number
      fromUs = lapseOf(other, firstSlice(other) + i)
    }
  }
  return earliest
}

function ownFitsAt(cut: Cut, counts: readonly number[], nowUs: number, room: number): number {
  const { periodUs, sliceUs, strict } = cut
  const first = Math.floor(nowUs / sliceUs) - counts.length + 1
  let newer = 0
  for (let i = counts.length - 1; i >= 0; i--) {
    const count = counts[i] as number
    if (newer + count > room) {
      // Slices lapse one after the other: all older ones have before this one begins to.
      const part = strict ? sliceUs : portion(newer + count - room, sliceUs, count)
      const atUs = (first + i) * sliceUs - 1 + periodUs + part
      return atUs > nowUs ? atUs : 0
    }
    newer += count
  }
  return 0
}

/** The segment to keep: without empty slices before the first that is not, and no more than can be parted exactly. */
export function kept({ periodUs, sliceUs }: Slices, { counts, other }: Laid, nowUs: number): Segment {
  let from = 0
  while (from < counts.length - 1 && counts[from] === 0) from += 1
  const rest = counts.slice(from)
  const total = sum(rest) + (other === undefined ? 0 : sum(other.counts))
  // Only the slice that lapses can be of so many, and none of today's limits has written that.
  if (total > MAX_TOTAL) rest[0] = (rest[0] as number) - (total - MAX_TOTAL)
  return { periodUs, sliceUs, atUs: nowUs, counts: rest }
}
