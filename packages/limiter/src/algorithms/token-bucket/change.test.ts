import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { smallBuckets, steps, tokenBuckets } from '../../../../../test/limit-arbitraries.ts'
import { inUs, statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { tokenBucket } from './index.ts'

const perMinute = (limit: number) => tokenBucket({ limit, period: '1m' })
const RUNS = { numRuns: 300 }

describe('changing the numbers of a token bucket', () => {
  it('keeps what was used: 80 of 100 leave nothing of 50, and 120 of 200 (redisson/redisson#2618, 3scale/APIcast#667)', async () => {
    const traced = traceLimit(perMinute(100))
    await traced.check(80)
    expect((await traced.check(1, perMinute(50))).allowed).toBe(false)
    expect(statusOf(await traced.peek(0, perMinute(200))).remaining).toBe(120)
    expect(statusOf(await traced.check(1, perMinute(200))).remaining).toBe(119)
  })

  it('changes nothing where the same rule is applied again, however often (redisson/redisson#5098)', async () => {
    const traced = traceLimit(perMinute(100))
    await traced.check(80)
    for (let i = 0; i < 1000; i++) await traced.peek(1, perMinute(100))
    for (let i = 0; i < 20; i++) expect((await traced.check(1, perMinute(100))).allowed).toBe(true)
    expect((await traced.check(1, perMinute(100))).allowed).toBe(false)
  })

  it('locks nobody out for what an earlier, faster rate has long given back', async () => {
    const traced = traceLimit(tokenBucket({ limit: 1000, period: '1s' }))
    await traced.check(1000)
    traced.clock.advance(1000)
    const hourly = tokenBucket({ limit: 1, period: '1h' })
    expect((await traced.check(1, hourly)).allowed).toBe(true)
    expect((await traced.check(1, hourly)).retryAfterMs).toBe(3_600_000)
  })

  it('never blocks for longer than the old rule would have: 1,000 a second used up, then one an hour', async () => {
    const traced = traceLimit(tokenBucket({ limit: 1000, period: '1s' }))
    await traced.check(1000)
    const hourly = tokenBucket({ limit: 1, period: '1h' })
    expect((await traced.check(1, hourly)).allowed).toBe(false)
    traced.clock.advance(1000)
    expect((await traced.check(1, hourly)).allowed).toBe(true)
  })

  it('lets a faster rate take effect on the refused: one an hour used, then one a second (redisson/redisson#6499)', async () => {
    const traced = traceLimit(tokenBucket({ limit: 1, period: '1h' }))
    await traced.check()
    const everySecond = tokenBucket({ limit: 1, period: '1s' })
    const refused = await traced.check(1, everySecond)
    expect([refused.allowed, refused.retryAfterMs]).toEqual([false, 1000])
    traced.clock.advance(999.999)
    expect((await traced.check(1, everySecond)).allowed).toBe(false)
    traced.clock.advance(0.001)
    expect((await traced.check(1, everySecond)).allowed).toBe(true)
  })

  it('applies 60 s → 10 s within 10 s, also to a caller who keeps trying (redisson/redisson#5060)', async () => {
    const traced = traceLimit(tokenBucket({ limit: 5, period: '60s' }))
    const faster = tokenBucket({ limit: 5, period: '10s' })
    await traced.check(5)
    let admitted = 0
    for (let ms = 0; ms <= 10_000; ms += 100) {
      if ((await traced.check(1, faster)).allowed) admitted += 1
      traced.clock.advance(100)
    }
    expect(admitted).toBe(5)
  })

  it('forgets nothing while the limit is 0', async () => {
    const traced = traceLimit(perMinute(100))
    await traced.check(80)
    const none = tokenBucket({ limit: 0, period: '1s' })
    expect((await traced.check(1, none)).reason).toBe('never')
    expect(statusOf(await traced.peek(1, perMinute(100))).remaining).toBe(20)
  })
})

/** Units in use as a fraction: what the first rule had, drained at its own rate to now. */
function unitsLeft(
  limit: { limit: number; periodUs: number },
  units: bigint,
  waitUs: number,
): [over: bigint, under: bigint] {
  const under = BigInt(limit.periodUs)
  const over = units * under - BigInt(limit.limit) * BigInt(waitUs)
  return [over > 0n ? over : 0n, under]
}

describe('changing any numbers to any others', () => {
  it('keeps the units used, drained at the old rate, rounded up and at most exhausted', async () => {
    const part = fc.double({ min: 0, max: 1, noNaN: true })
    await fc.assert(
      fc.asyncProperty(tokenBuckets, tokenBuckets, part, part, async (before, after, used, waited) => {
        const traced = traceLimit(before)
        const units = Math.ceil(before.capacity * used)
        await traced.check(units)
        const waitUs = Math.min(7e15, Math.floor(before.spanUs * waited))
        traced.clock.advanceUs(waitUs)
        const [over, under] = unitsLeft(before, BigInt(units), waitUs)
        const left = (over + under - 1n) / under
        const expected = left < BigInt(after.capacity) ? after.capacity - Number(left) : 0
        expect(statusOf(await traced.peek(0, after)).remaining).toBe(expected)
      }),
      { numRuns: 1000 },
    )
  })

  it('is no way to a second budget: there and back leaves at most what was left', async () => {
    await fc.assert(
      fc.asyncProperty(smallBuckets, smallBuckets, steps, async (before, after, trace) => {
        fc.pre(after.capacity >= before.capacity)
        const traced = traceLimit(before)
        for (const step of trace) await traced.check(step.cost(before))
        const { remaining } = statusOf(await traced.peek(0))
        await traced.check(1, after)
        expect(statusOf(await traced.peek(0)).remaining).toBeLessThanOrEqual(remaining)
      }),
      RUNS,
    )
  })

  it('never blocks longer than an exhausted bucket of today, where today’s rate is the faster', async () => {
    await fc.assert(
      fc.asyncProperty(smallBuckets, smallBuckets, async (before, after) => {
        fc.pre(before.limit / before.periodUs < after.limit / after.periodUs)
        const traced = traceLimit(before)
        await traced.check(before.capacity)
        const refused = await traced.check(after.capacity, after)
        if (refused.allowed) return
        const waitUs = inUs(refused.retryAfterMs)
        expect(waitUs).toBeLessThanOrEqual(after.spanUs)
        traced.clock.advanceUs(waitUs - 1)
        expect((await traced.check(after.capacity, after)).allowed).toBe(false)
        traced.clock.advanceUs(1)
        expect((await traced.check(after.capacity, after)).allowed).toBe(true)
      }),
      RUNS,
    )
  })
})
