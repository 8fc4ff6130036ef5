import { describe, expect, it } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createLimiter } from './limiter.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/index.ts'

const HOURS = 6
const CALLERS = 8
/** How often each caller asks in a second: together more than the limit. */
const ROUNDS = 16

describe('six hours of eight callers on 115 a second (redisson/redisson#3804)', () => {
  it.each([
    tokenBucket({ limit: 115, period: '1s' }),
    fixedWindow({ limit: 115, period: '1s' }),
    leakyBucket({ limit: 115, period: '1s' }),
  ])('admit in the last hour what they did in the first: $algorithm', async (limit) => {
    const clock = fakeClock()
    const limiter = createLimiter({ name: 'soak', store: memoryStore({ clock }), limit })
    const perHour: number[] = []
    for (let hour = 0; hour < HOURS; hour++) {
      let allowed = 0
      for (let second = 0; second < 3600; second++) {
        for (let round = 0; round < ROUNDS; round++) {
          const decisions = await Promise.all(Array.from({ length: CALLERS }, () => limiter.check('')))
          // What a bucket holds at first is let out in the first seconds.
          if (second >= 10) for (const decision of decisions) if (decision.allowed) allowed += 1
          clock.advanceUs(1_000_000 / ROUNDS)
        }
      }
      perHour.push(allowed)
    }
    const [first] = perHour
    for (const allowed of perHour) expect(Math.abs(allowed - 115 * 3590)).toBeLessThanOrEqual(1)
    expect(Math.abs((perHour.at(-1) as number) - (first as number))).toBeLessThanOrEqual(1)
    await limiter.close()
  })

  it.each([
    slidingWindow({ limit: 115, period: '1s' }),
    slidingLog({ limit: 115, period: '1s' }),
    fixedWindow({ limit: 115, period: 'minute', align: 'calendar', timeZone: 'Asia/Kathmandu' }),
  ])('admit in a later hour what they did in the first: $algorithm', async (limit) => {
    const clock = fakeClock()
    const limiter = createLimiter({ name: 'soak', store: memoryStore({ clock }), limit })
    const perHour: number[] = []
    for (let hour = 0; hour < HOURS; hour++) {
      let allowed = 0
      // Not a multiple of a slice, so that several phases are met, but of which an hour is one.
      for (let us = 0; us < 3600e6; us += 312_500) {
        for (let caller = 0; caller < CALLERS; caller++) {
          if ((await limiter.check('', { cost: 11 })).allowed) allowed += 11
        }
        clock.advanceUs(312_500)
      }
      perHour.push(allowed)
    }
    const [, second = 0] = perHour
    for (const allowed of perHour.slice(1)) expect(Math.abs(allowed - second)).toBeLessThanOrEqual(11)
    const periods = 3600e6 / limit.periodUs
    expect(second).toBeLessThanOrEqual((periods + 1) * 115)
    expect(second).toBeGreaterThan(0.7 * periods * 110)
    await limiter.close()
  })

  it('refuse a first call above the limit', async () => {
    const limiter = createLimiter({
      name: 'soak',
      store: memoryStore(),
      limit: tokenBucket({ limit: 115, period: '1s' }),
    })
    expect((await limiter.check('', { cost: 116 })).reason).toBe('never')
    expect((await limiter.check('', { cost: 115 })).allowed).toBe(true)
    await limiter.close()
  })
})
