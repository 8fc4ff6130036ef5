import { codecOf } from '../algorithms/index.ts'
import type { State } from '../limit.ts'
import type { Check } from '../store.ts'

/** Where states are kept between checks. */
export interface States {
  read(key: string): State | undefined
  /** Keeps a state; after `lifetimeUs` it reads as unused. */
  write(key: string, state: State, lifetimeUs: number): void
}

/**
 * Judges one check: the TypeScript half of `decide.lua`, same steps, same numbers.
 * @param view receives the views of the parts, one after the other, after the charge where there was one
 * @returns whether all limits admit
 */
export function judge(check: Check, states: States, nowUs: number, view: number[]): boolean {
  const { parts, peek } = check
  let admitted = true
  let at = 0

  // 4.1 open every limit, also behind one that refuses: the caller is told the longest wait
  for (const { limit, key, cost } of parts) {
    const state = states.read(key)
    let ahead: boolean
    if (state !== undefined && state.code !== limit.code) {
      const other = codecOf(state)
      limit.adopt(other.used(state, nowUs), nowUs, view, at)
      ahead = other.ahead(state, nowUs, limit.spanUs)
    } else {
      ahead = limit.open(state, nowUs, view, at)
    }
    // a state from the future is mended even by a refusal
    if (ahead && !peek) keep(states, key, limit.close(view, at, nowUs), nowUs)
    if (!limit.admits(view, at, cost)) admitted = false
    at += limit.viewSize
  }

  // 4.2 charge all of them
  if (!admitted || peek) return admitted
  at = 0
  for (const { limit, key, cost } of parts) {
    if (cost > 0) {
      limit.charge(view, at, cost)
      keep(states, key, limit.close(view, at, nowUs), nowUs)
    }
    at += limit.viewSize
  }
  return true
}

function keep(states: States, key: string, state: State, nowUs: number): void {
  states.write(key, state, codecOf(state).lifetimeUs(state, nowUs))
}
