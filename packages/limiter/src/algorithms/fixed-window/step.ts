/**
 * The fixed window's arithmetic. `fixed-window.lua` is its twin: same names, same order, same
 * numbered steps.
 */

/** The code of the algorithm in stored states and in the script. */
export const FIXED_WINDOW = 2

export interface FixedWindowState {
  readonly code: typeof FIXED_WINDOW
  /** Units used in the window. */
  count: number
  /** The instant at which the window is over. */
  endUs: number
}

/** The end of a window that begins, or is running, at `nowUs`. */
export function windowEnd(nowUs: number, periodUs: number, firstHit: boolean): number {
  return firstHit ? nowUs + periodUs : nowUs - (nowUs % periodUs) + periodUs
}
