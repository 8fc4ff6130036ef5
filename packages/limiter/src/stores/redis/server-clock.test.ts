import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ServerClock } from './server-clock.ts'

describe('ServerClock', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** A server whose clock is ahead of ours, asked over a way that takes its time. */
  function ask(clock: ServerClock, aheadMs: number, wayMs: number, backMs: number): void {
    const sentMs = performance.now()
    vi.advanceTimersByTime(wayMs)
    const nowUs = (performance.now() + aheadMs) * 1000
    vi.advanceTimersByTime(backMs)
    clock.see(nowUs, sentMs)
  }

  const errorMs = (clock: ServerClock, aheadMs: number) =>
    clock.at(performance.now()) / 1000 - performance.now() - aheadMs

  it('is never late, and early by the quickest way back (law)', () => {
    const answers = fc.array(fc.record({ wayMs: fc.nat(50), backMs: fc.nat(500) }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(answers, fc.integer({ min: -1e6, max: 1e9 }), (each, aheadMs) => {
        const clock = new ServerClock()
        for (const { wayMs, backMs } of each) {
          ask(clock, aheadMs, wayMs, backMs)
          vi.advanceTimersByTime(10)
        }
        const quickestMs = Math.min(...each.map(({ backMs }) => backMs))
        expect(errorMs(clock, aheadMs)).toBeLessThanOrEqual(0.001)
        expect(errorMs(clock, aheadMs)).toBeGreaterThanOrEqual(-quickestMs - 0.001)
      }),
    )
  })

  it('does not go wrong by an answer that was read late, because this process was busy', () => {
    const clock = new ServerClock()
    ask(clock, 5000, 1, 1)
    ask(clock, 5000, 1, 800)
    expect(errorMs(clock, 5000)).toBeCloseTo(-1, 2)
  })

  it('follows a step of the server, forward and back, with the first answer', () => {
    const clock = new ServerClock()
    ask(clock, 0, 1, 1)
    ask(clock, 3_600_000, 1, 1)
    expect(errorMs(clock, 3_600_000)).toBeCloseTo(-1, 2)
    ask(clock, 0, 1, 1)
    expect(errorMs(clock, 0)).toBeGreaterThanOrEqual(-1)
    expect(errorMs(clock, 0)).toBeLessThanOrEqual(2)
  })

  it('follows a clock that drifts for days', () => {
    const clock = new ServerClock()
    let aheadMs = 0
    for (let minute = 0; minute < 3 * 24 * 60; minute++) {
      vi.advanceTimersByTime(60_000)
      aheadMs += minute % 2880 < 1440 ? 6 : -6
      ask(clock, aheadMs, 1, 1)
      expect(Math.abs(errorMs(clock, aheadMs))).toBeLessThanOrEqual(2)
    }
  })
})
