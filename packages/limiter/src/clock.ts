/** Tells the time in integer microseconds since the Unix epoch. */
export type Clock = () => number

/** How far the wall clock must have run ahead before the anchor follows it, in µs. */
const REANCHOR_US = 1_000_000

/**
 * A clock that never steps back: it runs on the monotonic timer, anchored to the wall clock. When
 * the wall clock is found ahead (the process was suspended, the clock was set forward) the anchor
 * follows; a wall clock that was set back is ignored, so nobody waits for the length of the step.
 */
export function monotonicClock(): Clock {
  let anchorUs = Date.now() * 1000 - performance.now() * 1000
  return () => {
    const monotonicUs = performance.now() * 1000
    const wallUs = Date.now() * 1000
    if (wallUs - (anchorUs + monotonicUs) > REANCHOR_US) anchorUs = wallUs - monotonicUs
    return Math.floor(anchorUs + monotonicUs)
  }
}
