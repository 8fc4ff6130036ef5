import { codecOf } from '../algorithms/index.ts'
import type { Limit, State } from '../limit.ts'
import type { Check } from '../store.ts'

/** A place where a state is kept. */
export interface Slot {
  state: State
  /** The instant at which the state reads as unused. */
  unusedAtUs: number
}

/** Where states are kept between checks. */
export interface Slots {
  find(space: string, value: string): Slot | undefined
  add(space: string, value: string, state: State, unusedAtUs: number): void
}

/** The places of the check that is being judged; judging never waits, so one list serves all. */
const found: (Slot | undefined)[] = []

/**
 * Judges one check: the TypeScript half of `decide.lua`, same steps, same numbers.
 * @param view receives the views of the parts, one after the other, after the charge where there was one
 * @returns whether all limits admit
 */
export function judge(check: Check, slots: Slots, nowUs: number, view: number[]): boolean {
  const { parts, peek } = check
  let admitted = true
  let at = 0
  let part = 0

  // 4.1 open every limit, also behind one that refuses: the caller is told the longest wait
  for (const { limit, space, value, cost } of parts) {
    const slot = slots.find(space, value)
    const state = slot?.state
    let ahead: boolean
    if (state !== undefined && state.code !== limit.code) {
      const other = codecOf(state)
      limit.adopt(other.used(state, nowUs), nowUs, view, at)
      ahead = other.ahead(state, nowUs, limit.spanUs)
    } else {
      ahead = limit.open(state, nowUs, view, at)
    }
    // what must be repaired is repaired by a refusal too, but never by who only asks, nor by a limit of 0
    if (ahead && !peek && cost > 0 && slot !== undefined && limit.admits(view, at, 0)) {
      keep(slot, limit.close(view, at, nowUs, state), nowUs)
    }
    if (!limit.admits(view, at, cost)) {
      admitted = false
      if (state !== undefined && !ahead && cost <= limit.capacity) postpone(limit, state, view, at, nowUs, cost)
    }
    found[part++] = slot
    at += limit.viewSize
  }

  // 4.2 charge all of them
  if (!admitted || peek) return admitted
  at = 0
  for (let i = 0; i < parts.length; i++) {
    const { limit, space, value, cost } = parts[i] as Check['parts'][number]
    if (cost > 0) {
      const slot = found[i]
      limit.charge(view, at, cost)
      const state = limit.close(view, at, nowUs, slot?.state)
      if (slot === undefined) slots.add(space, value, state, nowUs + codecOf(state).lifetimeUs(state, nowUs))
      else keep(slot, state, nowUs)
    }
    at += limit.viewSize
  }
  return true
}

/** What goes by other numbers has room at an instant of its own. */
function postpone(limit: Limit, state: State, view: number[], at: number, nowUs: number, cost: number): void {
  if (state.code === limit.code && limit.wrote(state)) return
  limit.postpone(view, at, nowUs, cost, codecOf(state).roomAfterUs(state, nowUs, limit.capacity - cost))
}

function keep(slot: Slot, state: State, nowUs: number): void {
  slot.state = state
  slot.unusedAtUs = nowUs + codecOf(state).lifetimeUs(state, nowUs)
}
