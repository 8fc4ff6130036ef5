/**
 * The fixed window's arithmetic. `fixed-window.lua` is its twin: same names, same order, same
 * numbered steps.
 */

export interface FixedWindowState {
  readonly code: number
  /** Units used in the window, and in those that are booked ahead. */
  count: number
  /** The instant at which the window is over. */
  endUs: number
  /** Units and period of windows that are booked ahead; 0: none is. */
  limit: number
  periodUs: number
}

/** A window's count, with what is booked behind it, and its end; 0, 0: no window is open. */
export interface Span {
  readonly count: number
  readonly endUs: number
}

const NONE: Span = { count: 0, endUs: 0 }

/** The window that is open at `nowUs`. */
export function roll(state: FixedWindowState, nowUs: number): Span {
  // 1. an open window
  if (nowUs < state.endUs) return state
  // 2. windows that are over take their limit with them; what was booked ahead is in the one that is open
  if (state.periodUs === 0) return NONE
  const passed = Math.floor((nowUs - state.endUs) / state.periodUs) + 1
  const gone = passed * state.limit
  if (gone >= state.count) return NONE
  return { count: state.count - gone, endUs: state.endUs + passed * state.periodUs }
}

/** In how many windows from the open one the cost (at most `limit`) has its place. */
export function windowAhead(limit: number, count: number, cost: number): number {
  if (count <= limit - cost) return 0
  const rest = count % limit
  const full = (count - rest) / limit
  return rest + cost > limit ? full + 1 : full
}
