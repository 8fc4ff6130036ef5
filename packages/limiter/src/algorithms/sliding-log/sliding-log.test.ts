import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sized } from '../../../../../test/arbitraries.ts'
import { slidingLogs } from '../../../../../test/limit-arbitraries.ts'
import { inUs, statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { createEngine } from '../../engine.ts'
import { InvalidArgumentError } from '../../errors.ts'
import type { Limit } from '../../limit.ts'
import { memoryStore } from '../../stores/memory.ts'
import { fakeClock } from '../../testing/index.ts'
import { fixedWindow } from '../fixed-window/index.ts'
import { slidingLog, slidingLogCodec } from './index.ts'
import { append, type LogState, MAX_TOTAL, newLog } from './step.ts'

const NEVER = Number.POSITIVE_INFINITY
const START_MS = Date.UTC(2026, 0, 1)

/** ms since the start, cost, then: allowed, remaining, retryAfterMs, nextMs, resetAfterMs. */
type Row = [atMs: number, cost: number, allowed: boolean, remaining: number, retry: number, next: number, reset: number]

const examples: { name: string; options: Parameters<typeof slidingLog>[0]; rows: Row[] }[] = [
  {
    name: '3 in 10 s: each unit is back 10 s after it was taken',
    options: { limit: 3, period: '10s' },
    rows: [
      [0, 1, true, 2, 0, 10_000, 10_000],
      [4000, 2, true, 0, 0, 6000, 10_000],
      [5000, 1, false, 0, 5000, 5000, 9000],
      [5000, 2, false, 0, 9000, 5000, 9000],
      [9999.999, 1, false, 0, 0.001, 0.001, 4000.001],
      [10_000, 1, true, 0, 0, 4000, 10_000],
      [10_000, 4, false, 0, NEVER, 4000, 10_000],
      [20_000, 0, true, 3, 0, 0, 0],
    ],
  },
  {
    name: '3 in 10 s, all at once: the very first call after it is admitted (apache/shenyu#6754)',
    options: { limit: 3, period: '10s' },
    rows: [
      [0, 1, true, 2, 0, 10_000, 10_000],
      [0, 1, true, 1, 0, 10_000, 10_000],
      [0, 1, true, 0, 0, 10_000, 10_000],
      [10_001, 1, true, 2, 0, 10_000, 10_000],
    ],
  },
  {
    name: '0 refuses all, also what costs nothing',
    options: { limit: 0, period: '1s' },
    rows: [
      [0, 1, false, 0, NEVER, 0, 0],
      [0, 0, false, 0, NEVER, 0, 0],
    ],
  },
]

describe.each(examples)('sliding log $name', ({ options, rows }) => {
  it('decides as worked out by hand', async () => {
    const limit = slidingLog(options)
    const traced = traceLimit(limit, START_MS)
    for (const [atMs, cost, allowed, remaining, retry, next, reset] of rows) {
      traced.clock.advanceUs(Math.round(atMs * 1000) - traced.atUs)
      const decision = await traced.check(cost)
      const status = statusOf(decision)
      expect([atMs, cost, decision.allowed, status.remaining]).toEqual([atMs, cost, allowed, remaining])
      const waits = [inUs(decision.retryAfterMs), inUs(status.nextMs), inUs(status.resetAfterMs)]
      expect([atMs, ...waits]).toEqual([atMs, inUs(retry), inUs(next), inUs(reset)])
      expect([status.limit, status.capacity, status.periodMs]).toEqual([
        limit.limit,
        limit.limit,
        limit.periodUs / 1000,
      ])
    }
  })
})

describe('the numbers of a sliding log', () => {
  it.each([
    [{ limit: -1, period: '1s' }, 'limit'],
    [{ limit: 10_001, period: '1s' }, 'limit'],
    [{ limit: 5 }, 'period'],
    [{ limit: 5, period: '3661d' }, 'period'],
    [{ limit: 5, period: '1s', slices: 3 }, 'slidingLog.slices'],
    [undefined, 'slidingLog'],
  ])('refuses %j and names what is wrong', (options, argument) => {
    try {
      slidingLog(options as never)
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidArgumentError)
      expect((error as InvalidArgumentError).argument).toBe(argument)
      return
    }
    throw new Error('accepted')
  })
})

describe("an instance's share of a sliding log", () => {
  it('is N/k of the same window; where that is less than one unit, one unit in k/N windows', () => {
    const log = slidingLog({ limit: 10, period: '1s' })
    expect(log.share(4).wire).toEqual([5, 2, 1_000_000])
    expect(log.share(15).wire).toEqual([5, 1, 1_500_000])
    expect(log.share(1)).toBe(log)
  })

  it('keeps the law: k shares together admit at most N in a window, or at most N·T/P and k at once', () => {
    fc.assert(
      fc.property(slidingLogs, sized(100_000, 1), (log, instances) => {
        const share = log.share(instances)
        const [n, p, k] = [BigInt(log.limit), BigInt(log.periodUs), BigInt(instances)]
        const [shareN, shareP] = [BigInt(share.limit), BigInt(share.periodUs)]
        if (log.limit >= instances) expect([k * shareN <= n, shareP]).toEqual([true, p])
        else expect([share.limit, k * p <= n * shareP || shareP === 2n ** 51n]).toEqual([1, true])
      }),
      { numRuns: 1000 },
    )
  })
})

describe('giving back to a sliding log', () => {
  function open(limit: Limit = slidingLog({ limit: 10, period: '10s' })) {
    const clock = fakeClock(START_MS)
    const engine = createEngine({ store: memoryStore({ clock }) })
    const items = (cost: number, other = limit) => [{ name: 'l', limit: other, key: 'k', cost }]
    const left = async () => statusOf(await engine.peek(items(0))).remaining
    return { clock, engine, items, left }
  }

  it('gives to the run of the charge, and nothing once that has lapsed', async () => {
    const { clock, engine, items, left } = open()
    const first = await engine.check(items(4))
    clock.advance(5000)
    await engine.check(items(6))
    expect(await engine.refund(items(3), { receipt: first.receipt as string })).toEqual([3])
    expect(await left()).toBe(3)
    clock.advance(5000)
    expect(await left()).toBe(4)
    expect(await engine.refund(items(3), { receipt: first.receipt as string })).toEqual([0])
    expect(await left()).toBe(4)
  })

  it('gives no more than the run has, also twice', async () => {
    const { clock, engine, items, left } = open()
    const first = await engine.check(items(4))
    clock.advance(1000)
    await engine.check(items(4))
    const back = async () => (await engine.refund(items(4), { receipt: first.receipt as string }))[0]
    expect([await back(), await back(), await left()]).toEqual([4, 0, 6])
  })

  it('knows a repetition for as long as it could matter', async () => {
    const { clock, engine, items, left } = open(slidingLog({ limit: 10, period: '1h' }))
    const { receipt } = await engine.check(items(4))
    await engine.check(items(4))
    expect(await engine.refund(items(2), { receipt: receipt as string, id: 'once' })).toEqual([2])
    clock.advance(3_500_000)
    expect(await engine.refund(items(2), { receipt: receipt as string, id: 'once' })).toEqual([0])
    expect(await left()).toBe(4)
  })

  it('takes from the newest without a receipt, of as many runs as it needs, never above full', async () => {
    const { clock, engine, items, left } = open()
    for (const cost of [4, 2, 3]) {
      await engine.check(items(cost))
      clock.advance(1000)
    }
    expect([await engine.refund(items(4)), await left()]).toEqual([[4], 5])
    // Of the second run one unit is left.
    clock.advance(7000)
    expect(await left()).toBe(9)
    expect([await engine.refund(items(9)), await left()]).toEqual([[1], 10])
  })

  it('finds a run also after its period has become longer', async () => {
    const { clock, engine, items, left } = open(slidingLog({ limit: 10, period: '1m' }))
    const first = await engine.check(items(4, slidingLog({ limit: 10, period: '10s' })))
    clock.advance(1000)
    const second = await engine.check(items(4))
    expect(await engine.refund(items(4), { receipt: first.receipt as string })).toEqual([4])
    expect(await engine.refund(items(3), { receipt: second.receipt as string })).toEqual([3])
    expect(await left()).toBe(9)
  })
})

describe('a sliding log beside other algorithms', () => {
  it('takes over what a fixed window counted as charged now, at most exhausted', async () => {
    const traced = traceLimit(fixedWindow({ limit: 100, period: '10s' }), START_MS)
    await traced.check(80)
    expect(await traced.check(1, slidingLog({ limit: 50, period: '10s' }))).toMatchObject({
      allowed: false,
      retryAfterMs: 10_000,
    })
    expect(statusOf(await traced.check(1, slidingLog({ limit: 100, period: '10s' }))).remaining).toBe(19)
  })

  it('tells a wait also where the other state must be repaired', async () => {
    const traced = traceLimit(fixedWindow({ limit: 5, period: '365d', align: 'first-hit' }), START_MS)
    await traced.check(5)
    const log = slidingLog({ limit: 5, period: '10s' })
    expect(await traced.check(5, log)).toMatchObject({ allowed: false, retryAfterMs: 10_000 })
    traced.clock.advance(10_000)
    expect((await traced.check(5, log)).allowed).toBe(true)
  })
})

describe('the state of a sliding log', () => {
  const runs = ({ instants, totals }: LogState) => instants.map((at, i) => [at, totals[i]])

  it('is one run for what is charged in the same µs', () => {
    const log = newLog(10)
    for (const atUs of [5, 5, 6, 6, 6, 9]) append(log, atUs, 2)
    expect(runs(log)).toEqual([
      [5, 4],
      [6, 10],
      [9, 12],
    ])
    expect(slidingLogCodec.encode(log).length).toBe(33 + 3 * 16)
  })

  it('begins its totals anew before they leave the exact range', () => {
    const log = { ...newLog(10), base: MAX_TOTAL - 3, instants: [5], totals: [MAX_TOTAL - 1] }
    append(log, 6, 1)
    expect(log.base).toBe(MAX_TOTAL - 3)
    append(log, 7, 4)
    expect([log.base, ...runs(log)]).toEqual([0, [5, 2], [6, 3], [7, 7]])
  })

  it('grows by no refusal, and drops all that has lapsed when something is charged', async () => {
    const clock = fakeClock(START_MS)
    const limit = slidingLog({ limit: 100, period: '1s' })
    let state: LogState | undefined
    const view: number[] = []
    for (let i = 0; i < 5000; i++) {
      limit.open(state, clock(), view, 0, 1)
      if (limit.admits(view, 0, 1)) state = limit.take(state, clock(), view, 0, 1, 0) as LogState
      expect(state?.instants.length).toBeLessThanOrEqual(100)
      clock.advanceUs(777)
    }
  })
})
