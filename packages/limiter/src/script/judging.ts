import { FIXED_WINDOW, SINCE } from '../algorithms/codes.ts'
import type { FixedWindowState } from '../algorithms/fixed-window/step.ts'
import type { SinceState } from '../algorithms/since.ts'
import type { Limit, State } from '../limit.ts'
import type { Check, Operation, Part, Verdict } from '../store.ts'
import { change, hasLapsed, type Mark, newMark, settle, unusedAtUs } from './marks.ts'

/** A place where a state is kept. */
export interface Slot {
  state: State | undefined
  mark: Mark | undefined
  /** The instant at which the slot means nothing any more. */
  unusedAtUs: number
  /** Of the limit that is counted here. */
  readonly capacity: number
}

/** Where states are kept between checks. */
export interface Slots {
  find(space: string, value: string): Slot | undefined
  add(part: Part, state: State | undefined, mark: Mark | undefined, unusedAtUs: number): void
}

/** The space of the instants since which limits exist; no rule can have its name. */
export const SINCE_SPACE = '~:since:'
const SINCE_PART = { name: 'since', space: SINCE_SPACE, cost: 0, onStoreFailure: 'local' } as const

/** A check that is being judged. */
export interface Judging {
  check: Check
  slots: Slots
  nowUs: number
  view: number[]
  parts: readonly Part[]
  readonly found: (Slot | undefined)[]
  /** Where each part's view begins. */
  readonly at: number[]
  readonly cost: number[]
  readonly fits: boolean[]
  /** Units of those who wait for each part's limit before it. */
  readonly behind: number[]
  result: number
  /** Of what its id holds ahead, what it did not report. */
  unspent: number
  /** Whether the check has a ticket and waits. */
  waits: boolean
}

/** The one that is being judged: judging never waits, so one serves all. */
export const judging: Judging = {
  check: { parts: [], peek: true },
  slots: { find: () => undefined, add: () => undefined },
  nowUs: 0,
  view: [],
  parts: [],
  found: [],
  at: [],
  cost: [],
  fits: [],
  behind: [],
  result: 0,
  unspent: 0,
  waits: false,
}

/** A verdict that is filled in. */
export interface Filled extends Verdict {
  allowed: boolean
  nowUs: number
  result: number
  blockedPart: number
  blockedUs: number
  receiptUs: number
  followers: Verdict[] | undefined
}

/** An operation that is judged like a check. */
export interface JudgedOperation {
  /** What is done before the limits are opened. */
  before?(judging: Judging, args: Operation['args']): void
  /** @returns whether to charge; `verdict.allowed` is set */
  judge(judging: Judging, args: Operation['args'], verdict: Filled): boolean
  charged?(judging: Judging, p: number, slot: Slot, args: Operation['args']): void
}

/** The place with what has lapsed settled; who only asks gets a copy. */
export function settled(slot: Slot | undefined): Slot | undefined {
  if (slot === undefined || !hasLapsed(slot.mark, judging.nowUs)) return slot
  const own = judging.check.peek
    ? { ...slot, state: structuredClone(slot.state), mark: structuredClone(slot.mark) }
    : slot
  settle(own.state, own.mark as Mark, judging.nowUs)
  if (own === slot) kept(slot)
  return own
}

/** A counter that nothing is known of, of a limit whose counters begin exhausted. */
export function unborn(limit: Limit, space: string): State {
  const { slots, nowUs, check } = judging
  const slot = slots.find(SINCE_SPACE, sinceValue(space))
  let since = slot?.state as SinceState | undefined
  if (since?.code !== SINCE || since.sinceUs > nowUs) {
    since = { code: SINCE, sinceUs: nowUs }
    if (!check.peek) keep(slot, { ...SINCE_PART, limit, value: sinceValue(space) }, since)
  }
  return (limit.exhausted as (atUs: number) => State).call(limit, since.sinceUs)
}

/** What is written in a key for a limit's space. */
export function sinceValue(space: string): string {
  return space.slice(0, -1)
}

/** A verdict to fill in. */
export function blank(view: number[]): Filled {
  return {
    allowed: false,
    nowUs: 0,
    view,
    at: 0,
    result: 0,
    blockedPart: -1,
    blockedUs: 0,
    receiptUs: 0,
    followers: undefined,
  }
}

/** Keeps a state in its place. */
export function keep(slot: Slot | undefined, part: Part, state: State): Slot {
  if (slot === undefined) {
    judging.slots.add(part, state, undefined, unusedAtUs(state, undefined, judging.nowUs))
    return judging.slots.find(part.space, part.value) as Slot
  }
  // Receipts of before are of another algorithm, or of a window that no longer ends then.
  if (slot.state !== undefined && (slot.state.code !== state.code || isCutShort(slot.state, state)))
    change(markOf(slot), slot.state, judging.nowUs)
  slot.state = state
  kept(slot)
  return slot
}

function isCutShort(former: State, state: State): boolean {
  return state.code === FIXED_WINDOW && (state as FixedWindowState).endUs < (former as FixedWindowState).endUs
}

export function markOf(slot: Slot): Mark {
  slot.mark ??= newMark()
  return slot.mark
}

/** Whatever a place holds has changed; a block that is over leaves with it. */
export function kept(slot: Slot): void {
  const { mark } = slot
  if (mark !== undefined && mark.blockedUs <= judging.nowUs) mark.blockedUs = 0
  if (mark !== undefined && mark.line.length > 0) mark.line = mark.line.filter(({ tillUs }) => tillUs > judging.nowUs)
  slot.unusedAtUs = unusedAtUs(slot.state, slot.mark, judging.nowUs)
}
