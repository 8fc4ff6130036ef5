import { ceilDiv, MAX_EXACT } from '../exact.ts'
import { aheadLeft, type BucketState, drain } from './step.ts'

/**
 * Giving back to a bucket. `token-bucket.lua` is the twin: same names, same order, same numbered steps.
 *
 * A receipt names the instant at which its charge has drained, as it was when it was written. Whatever is given back
 * from beneath a charge lets it drain earlier: that is remembered, or its receipt would later take from what others have
 * charged since.
 * @param inLine whether units take their turns one by one
 * @returns units that came back, rounded: a moment after its charge a unit is nearly whole
 */
export function giveBack(
  state: BucketState,
  inLine: boolean,
  nowUs: number,
  units: number,
  receiptUs: number,
  chargedUs: number,
  again: boolean,
): number {
  // 1. what is left now
  const level = drain(state, nowUs)
  const ahead = aheadLeft(state, level)
  // 2. of the charge, what has not drained; of a place in line, only the last
  let back = units * state.grain
  let last = false
  let endUs = 0
  if (receiptUs > 0) {
    const given = endSince(state, chargedUs)
    last = given === 0 && nowUs + Math.floor(level / state.rate) === receiptUs
    endUs = given > 0 && given < receiptUs ? given : receiptUs
    const left = endUs > nowUs && chargedUs <= nowUs ? (endUs - nowUs) * state.rate : 0
    if (left < back) back = left
    if (!last && (ahead > 0 || inLine)) back = 0
    // a place in line comes back whole
    if (again && ahead > 0) back = 0
  }
  if (back > level) back = level
  // 3. what lies above ends earlier than its receipts say, and so does what is left of this charge itself
  forget(state, nowUs)
  if (back > 0 && (!last || again)) {
    const sinceUs = nowUs > state.atUs ? nowUs : state.atUs
    const untilUs = sinceUs + ceilDiv(level, state.rate)
    remember(state, nowUs, sinceUs, nowUs + Math.floor((level - back) / state.rate), untilUs)
    if (again && receiptUs > 0) remember(state, nowUs, chargedUs, endUs - ceilDiv(back, state.rate), untilUs)
  }
  state.level = level - back
  if (nowUs > state.atUs) state.atUs = nowUs
  state.ahead = ahead > back ? ahead - back : 0
  return Math.floor(back / state.grain + 0.5)
}

/** How many instants of giving back are told apart. */
const MAX_GIVEN = 4

/**
 * Remembers that what was charged until `sinceUs` has drained by `endUs`, whatever its receipts say: they were written
 * before something beneath was given back. `untilUs`: the last instant that such a receipt can name.
 *
 * Kept as `untilUs`, then pairs of the two others, both ascending: of what was charged until `sinceUs`, the first pair
 * that is not before it tells the end.
 */
export function remember(state: BucketState, nowUs: number, sinceUs: number, endUs: number, untilUs: number): void {
  // 1. what no receipt can name any more is forgotten
  forget(state, nowUs)
  const given = state.given ?? [0]
  if (untilUs > (given[0] as number)) given[0] = untilUs < MAX_EXACT ? untilUs : MAX_EXACT
  // 2. an earlier end is the end of all that was charged before
  let place = given.length
  while (place > 1 && (given[place - 2] as number) > sinceUs) place -= 2
  let from = place
  while (from > 1 && (given[from - 1] as number) >= endUs) from -= 2
  given.splice(from, place - from, sinceUs, endUs < MAX_EXACT ? endUs : MAX_EXACT)
  // 3. too many: of the two that lie closest, the earlier end stands for both
  if (given.length > 1 + 2 * MAX_GIVEN) {
    let closest = 3
    for (let i = 5; i < given.length; i += 2) if (gap(given, i, nowUs) < gap(given, closest, nowUs)) closest = i
    given[closest - 2] = given[closest] as number
    given.splice(closest, 2)
  }
  state.given = given
}

/** How far the pair at `i` ends behind the one before it; what is over counts as ending now. */
function gap(given: readonly number[], i: number, nowUs: number): number {
  const end = given[i + 1] as number
  const before = given[i - 1] as number
  return (end > nowUs ? end : nowUs) - (before > nowUs ? before : nowUs)
}

/** Drops what no receipt can name any more. */
export function forget(state: BucketState, nowUs: number): void {
  if (state.given !== undefined && (state.given[0] as number) <= nowUs) state.given = undefined
}

/** When what was charged at `atUs` has drained at the latest; 0: its receipt says. */
export function endSince(state: BucketState, atUs: number): number {
  const { given } = state
  if (given === undefined) return 0
  for (let i = 1; i < given.length; i += 2) if ((given[i] as number) >= atUs) return given[i + 1] as number
  return 0
}
