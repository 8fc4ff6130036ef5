/** A clock that stands still until a test moves it; give it to a store in place of its own. */
export interface FakeClock {
  /** The time in integer µs since the Unix epoch. */
  (): number
  /** Moves the clock by milliseconds (a fraction carries microseconds); negative is a step back. */
  advance(ms: number): void
  /** Moves the clock by integer µs. */
  advanceUs(us: number): void
  /** Sets the clock, in integer µs since the Unix epoch. */
  setUs(us: number): void
}

/** @param startMs where it stands at first, in ms since the Unix epoch; default the first of January 2026 */
export function fakeClock(startMs = Date.UTC(2026, 0, 1)): FakeClock {
  let nowUs = Math.round(startMs * 1000)
  const advanceUs = (us: number) => {
    nowUs += us
  }
  const advance = (ms: number) => advanceUs(Math.round(ms * 1000))
  const setUs = (us: number) => {
    nowUs = us
  }
  return Object.assign(() => nowUs, { advance, advanceUs, setUs })
}
