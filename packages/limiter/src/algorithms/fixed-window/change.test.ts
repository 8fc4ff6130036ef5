import { describe, expect, it } from 'vitest'
import { statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { tokenBucket } from '../token-bucket/index.ts'
import { fixedWindow } from './index.ts'

const window = (limit: number, period: string) => fixedWindow({ limit, period })
/** Two seconds into a minute. */
const START_MS = Date.UTC(2026, 0, 1, 0, 0, 2)

describe('changing the numbers of a fixed window', () => {
  it('keeps what was used: 80 of 100 leave nothing of 50, and 120 of 200 (redisson/redisson#2618, 3scale/APIcast#667)', async () => {
    const traced = traceLimit(window(100, '60s'), START_MS)
    await traced.check(80)
    expect((await traced.check(1, window(50, '60s'))).allowed).toBe(false)
    expect(statusOf(await traced.check(1, window(200, '60s'))).remaining).toBe(119)
  })

  it('admits what costs nothing also where more is used than today’s limit', async () => {
    const traced = traceLimit(window(100, '60s'), START_MS)
    await traced.check(80)
    const asked = await traced.check(0, window(50, '60s'))
    expect([asked.allowed, asked.retryAfterMs]).toEqual([true, 0])
    expect(statusOf(asked)).toMatchObject({ remaining: 0, retryAfterMs: 0 })
  })

  it('applies 60 s → 10 s within 10 s (redisson/redisson#6499)', async () => {
    const traced = traceLimit(window(5, '60s'), START_MS)
    await traced.check(5)
    const refused = await traced.check(1, window(5, '10s'))
    expect([refused.allowed, refused.retryAfterMs]).toEqual([false, 8000])
    traced.clock.advance(7999.999)
    expect((await traced.check(1, window(5, '10s'))).allowed).toBe(false)
    traced.clock.advance(0.001)
    expect((await traced.check(5, window(5, '10s'))).allowed).toBe(true)
  })

  it('never blocks for longer than the old window: 10 s → 60 s', async () => {
    const traced = traceLimit(window(5, '10s'), START_MS)
    await traced.check(5)
    expect((await traced.check(1, window(5, '60s'))).retryAfterMs).toBe(8000)
    traced.clock.advance(8000)
    expect((await traced.check(5, window(5, '60s'))).allowed).toBe(true)
  })

  it('changes the alignment with the next window: an open one keeps its own end', async () => {
    const traced = traceLimit(window(5, '10s'), START_MS)
    await traced.check(5)
    const firstHit = fixedWindow({ limit: 5, period: '10s', align: 'first-hit' })
    expect((await traced.check(1, firstHit)).retryAfterMs).toBe(8000)
    traced.clock.advance(9000)
    expect(statusOf(await traced.check(5, firstHit)).resetAfterMs).toBe(10_000)
  })
})

describe('changing the algorithm', () => {
  it('reads a bucket as its units used now, in a window that is open from now', async () => {
    const bucket = tokenBucket({ limit: 100, period: '100s' })
    const traced = traceLimit(bucket, START_MS)
    await traced.check(60)
    traced.clock.advance(10_500)
    const moved = await traced.check(1, window(100, '60s'))
    expect(statusOf(moved)).toMatchObject({ remaining: 100 - 50 - 1, resetAfterMs: 47_500 })
  })

  it('reads a window as its units used now, at most exhausted', async () => {
    const traced = traceLimit(window(100, '60s'), START_MS)
    await traced.check(60)
    expect(statusOf(await traced.check(1, tokenBucket({ limit: 100, period: '60s' }))).remaining).toBe(39)
    const other = traceLimit(window(100, '60s'), START_MS)
    await other.check(60)
    const refused = await other.check(1, tokenBucket({ limit: 10, period: '60s' }))
    expect([refused.allowed, statusOf(refused).remaining, refused.retryAfterMs]).toEqual([false, 0, 58_000])
  })

  it('is over with the window: a bucket that takes its place at the end is full', async () => {
    const traced = traceLimit(window(100, '60s'), START_MS)
    await traced.check(100)
    traced.clock.advance(58_000)
    expect(statusOf(await traced.check(1, tokenBucket({ limit: 100, period: '60s' }))).remaining).toBe(99)
  })

  it('is effective within a period of today: ten an hour, used up, then ten a second', async () => {
    for (const [before, after] of [
      [tokenBucket({ limit: 10, period: '1h' }), window(10, '1s')],
      [window(10, '1h'), tokenBucket({ limit: 10, period: '1s' })],
    ] as const) {
      const traced = traceLimit(before, START_MS)
      await traced.check(10)
      const refused = await traced.check(1, after)
      expect([refused.allowed, refused.retryAfterMs <= 1000]).toEqual([false, true])
      traced.clock.advance(1000)
      expect((await traced.check(10, after)).allowed).toBe(true)
    }
  })

  it('forgets nothing while the limit is 0', async () => {
    for (const none of [fixedWindow({ limit: 0, period: '1ms' }), tokenBucket({ limit: 0, period: '1ms' })]) {
      for (const before of [window(100, '1h'), tokenBucket({ limit: 100, period: '1h' })]) {
        const traced = traceLimit(before, START_MS)
        await traced.check(80)
        expect((await traced.check(1, none)).reason).toBe('never')
        expect(statusOf(await traced.peek()).remaining).toBe(20)
      }
    }
  })
})
