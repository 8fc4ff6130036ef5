import { afterEach, describe, expect, it, vi } from 'vitest'
import { monotonicClock } from './clock.ts'

const START_MS = Date.UTC(2026, 0, 1)

/** Both timers of the process, moved apart from each other. */
function timers() {
  const at = { wallMs: START_MS, monotonicMs: 5000 }
  vi.spyOn(Date, 'now').mockImplementation(() => Math.floor(at.wallMs))
  vi.spyOn(performance, 'now').mockImplementation(() => at.monotonicMs)
  const pass = (ms: number) => {
    at.wallMs += ms
    at.monotonicMs += ms
  }
  return { at, pass }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe("the memory store's own clock", () => {
  it('tells the time in whole µs since 1970', () => {
    const { pass } = timers()
    const clock = monotonicClock()
    expect(clock()).toBe(START_MS * 1000)
    pass(0.0075)
    expect(clock()).toBe(START_MS * 1000 + 7)
  })

  it('does not follow a wall clock that is set back: nobody waits for the step (langchain-ai/langchain PR#24961)', () => {
    const { at, pass } = timers()
    const clock = monotonicClock()
    at.wallMs -= 11_000
    expect(clock()).toBe(START_MS * 1000)
    pass(1000)
    expect(clock()).toBe((START_MS + 1000) * 1000)
    at.wallMs -= 3_600_000
    pass(1)
    expect(clock()).toBe((START_MS + 1001) * 1000)
  })

  it('follows a wall clock that ran ahead while the process was suspended, and stays there', () => {
    const { at, pass } = timers()
    const clock = monotonicClock()
    at.wallMs += 3_600_000
    expect(clock()).toBe((START_MS + 3_600_000) * 1000)
    at.wallMs -= 3_600_000
    pass(5)
    expect(clock()).toBe((START_MS + 3_600_005) * 1000)
  })

  it('does not follow the small corrections of a wall clock', () => {
    const { at, pass } = timers()
    const clock = monotonicClock()
    at.wallMs += 900
    pass(10)
    expect(clock()).toBe((START_MS + 10) * 1000)
  })

  it('never goes back, whatever the wall clock does', () => {
    const { at, pass } = timers()
    const clock = monotonicClock()
    let last = clock()
    for (const step of [0.4, -5000, 1500, -1500, 900, 86_400_000, -86_400_000, 999, 1001]) {
      at.wallMs += step
      pass(0.001)
      const now = clock()
      expect(now).toBeGreaterThanOrEqual(last)
      expect(Number.isSafeInteger(now)).toBe(true)
      last = now
    }
  })
})
