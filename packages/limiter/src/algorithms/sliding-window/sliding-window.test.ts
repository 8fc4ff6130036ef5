import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sized } from '../../../../../test/arbitraries.ts'
import { slidingWindows } from '../../../../../test/limit-arbitraries.ts'
import { inUs, statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { createEngine } from '../../engine.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { memoryStore } from '../../stores/memory.ts'
import { fakeClock } from '../../testing/index.ts'
import { fixedWindow } from '../fixed-window/index.ts'
import { slidingWindow, slidingWindowCodec } from './index.ts'

const NEVER = Number.POSITIVE_INFINITY
/** At an edge of slices. */
const START_MS = Date.UTC(2026, 0, 1)

/** ms since the start, cost, then: allowed, remaining, retryAfterMs, nextMs, resetAfterMs. */
type Row = [atMs: number, cost: number, allowed: boolean, remaining: number, retry: number, next: number, reset: number]

const examples: { name: string; options: Parameters<typeof slidingWindow>[0]; rows: Row[] }[] = [
  {
    name: 'weighted: 10 in 10 s, by slices of 2 s; the oldest gives its units back one after the other',
    options: { limit: 10, period: '10s', slices: 5 },
    rows: [
      // A quarter of 4 units is back when a quarter of the slice's 2 s has left the window, which ends before now.
      [0, 4, true, 6, 0, 10_499.999, 11_999.999],
      [3000, 6, true, 0, 0, 7499.999, 10_999.999],
      [3000, 1, false, 0, 7499.999, 7499.999, 10_999.999],
      [10_499.998, 1, false, 0, 0.001, 0.001, 3500.001],
      [10_499.999, 1, true, 0, 0, 500, 11_500],
      [11_000, 3, false, 1, 999.999, 499.999, 10_999.999],
    ],
  },
  {
    name: 'strict: the oldest slice counts whole until its last µs has lapsed',
    options: { limit: 10, period: '10s', slices: 5, strict: true },
    rows: [
      [0, 4, true, 6, 0, 11_999.999, 11_999.999],
      [3000, 6, true, 0, 0, 8999.999, 10_999.999],
      [11_999.998, 1, false, 0, 0.001, 0.001, 2000.001],
      [11_999.999, 4, true, 0, 0, 2000, 10_000],
      [11_999.999, 11, false, 0, NEVER, 2000, 10_000],
    ],
  },
  {
    name: 'of one slice: what a fixed window of twice the period would be, weighted',
    options: { limit: 100, period: '10s', slices: 1 },
    rows: [
      [9000, 100, true, 0, 0, 1000 + 99.999, 10_999.999],
      [14_999.999, 50, true, 0, 0, 100, 15_000],
    ],
  },
  {
    name: 'of more slices than µs',
    options: { limit: 2, period: 0.005, slices: 60 },
    rows: [
      [0, 1, true, 1, 0, 0.005, 0.005],
      [0.002, 1, true, 0, 0, 0.003, 0.005],
      [0.004, 1, false, 0, 0.001, 0.001, 0.003],
      [0.005, 1, true, 0, 0, 0.002, 0.005],
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

describe.each(examples)('sliding window $name', ({ options, rows }) => {
  it('decides as worked out by hand', async () => {
    const limit = slidingWindow(options)
    const traced = traceLimit(limit, START_MS)
    for (const [atMs, cost, allowed, remaining, retry, next, reset] of rows) {
      traced.clock.advanceUs(Math.round(atMs * 1000) - traced.atUs)
      const decision = await traced.check(cost)
      const status = statusOf(decision)
      const said = [atMs, cost, decision.allowed, status.remaining]
      expect(said).toEqual([atMs, cost, allowed, remaining])
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

describe('the numbers of a sliding window', () => {
  it.each([
    [{ limit: -1, period: '1s' }, 'limit'],
    [{ limit: 2 ** 49 + 1, period: '1s' }, 'limit'],
    [{ limit: 5 }, 'period'],
    [{ limit: 5, period: '3661d' }, 'period'],
    [{ limit: 5, period: '1s', slices: 0 }, 'slices'],
    [{ limit: 5, period: '1s', slices: 61 }, 'slices'],
    [{ limit: 5, period: '1s', slices: 2.5 }, 'slices'],
    [{ limit: 5, period: '1s', strict: 1 }, 'strict'],
    [{ limit: 5, period: '1s', burst: 9 }, 'slidingWindow.burst'],
    [undefined, 'slidingWindow'],
  ])('refuses %j and names what is wrong', (options, argument) => {
    try {
      slidingWindow(options as never)
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidArgumentError)
      expect((error as InvalidArgumentError).argument).toBe(argument)
      return
    }
    throw new Error('accepted')
  })

  it('says which limit fits where one does not', () => {
    expect(() => slidingWindow({ limit: 2 ** 50, period: '1s' })).toThrow(/limit 562949953421312 or less fits/)
  })
})

describe("an instance's share of a sliding window", () => {
  it('is N/k of the same window; where that is less than one unit, one unit in k/N windows', () => {
    const window = slidingWindow({ limit: 10, period: '1s', slices: 4, strict: true })
    expect(window.share(4).wire).toEqual([4, 2, 1_000_000, 250_000, 1])
    expect(window.share(15).wire).toEqual([4, 1, 1_500_000, 375_000, 1])
    expect(window.share(1)).toBe(window)
  })

  it('keeps the law: k shares together admit at most N in a window, or at most N·T/P and k at once', () => {
    fc.assert(
      fc.property(slidingWindows, sized(100_000, 1), (window, instances) => {
        const share = window.share(instances)
        const [n, p, k] = [BigInt(window.limit), BigInt(window.periodUs), BigInt(instances)]
        const [shareN, shareP] = [BigInt(share.limit), BigInt(share.periodUs)]
        if (window.limit >= instances) expect([k * shareN <= n, shareP]).toEqual([true, p])
        else expect([share.limit, k * p <= n * shareP || shareP === 2n ** 51n]).toEqual([1, true])
      }),
      { numRuns: 1000 },
    )
  })
})

describe('giving back to a sliding window', () => {
  function open(limit = slidingWindow({ limit: 10, period: '10s', strict: true })) {
    const clock = fakeClock(START_MS)
    const engine = createEngine({ store: memoryStore({ clock }) })
    const items = (cost: number) => [{ name: 'l', limit, key: 'k', cost }]
    const left = async () => statusOf(await engine.peek(items(0))).remaining
    return { clock, engine, items, left }
  }

  it('gives to the slice of the charge, and nothing once that has lapsed', async () => {
    const { clock, engine, items, left } = open()
    const first = await engine.check(items(4))
    clock.advance(5000)
    await engine.check(items(6))
    expect(await engine.refund(items(3), { receipt: first.receipt as string })).toEqual([3])
    expect(await left()).toBe(3)
    clock.advance(5999.999)
    // The first slice has lapsed; what is in the second is somebody else's.
    expect(await left()).toBe(4)
    expect(await engine.refund(items(3), { receipt: first.receipt as string })).toEqual([0])
    expect(await left()).toBe(4)
  })

  it('knows a repetition for as long as it could matter', async () => {
    const { clock, engine, items, left } = open(slidingWindow({ limit: 10, period: '1h', strict: true }))
    const { receipt } = await engine.check(items(4))
    await engine.check(items(4))
    expect(await engine.refund(items(2), { receipt: receipt as string, id: 'once' })).toEqual([2])
    clock.advance(3_500_000)
    expect(await engine.refund(items(2), { receipt: receipt as string, id: 'once' })).toEqual([0])
    expect(await left()).toBe(4)
  })

  it('takes from the newest without a receipt, never above full', async () => {
    const { clock, engine, items, left } = open()
    await engine.check(items(4))
    clock.advance(5000)
    await engine.check(items(2))
    expect(await engine.refund(items(3))).toEqual([3])
    clock.advance(5000)
    expect(await left()).toBe(7)
    clock.advance(1000)
    expect([await left(), await engine.refund(items(3))]).toEqual([10, [0]])
  })
})

describe('a sliding window beside other algorithms', () => {
  it('takes over what a fixed window counted as charged now, at most exhausted', async () => {
    const traced = traceLimit(fixedWindow({ limit: 100, period: '10s' }), START_MS)
    await traced.check(80)
    const window = slidingWindow({ limit: 50, period: '10s' })
    expect(await traced.check(1, window)).toMatchObject({ allowed: false, retryAfterMs: 10_000 })
    expect(statusOf(await traced.check(1, slidingWindow({ limit: 100, period: '10s' }))).remaining).toBe(19)
  })

  it('tells a wait also where the other state must be repaired', async () => {
    const traced = traceLimit(fixedWindow({ limit: 5, period: '365d', align: 'first-hit' }), START_MS)
    await traced.check(5)
    const window = slidingWindow({ limit: 5, period: '10s', slices: 10 })
    const refused = await traced.check(5, window)
    expect([refused.allowed, inUs(refused.retryAfterMs)]).toEqual([false, 10_999_999])
    traced.clock.advanceUs(10_999_999)
    expect((await traced.check(5, window)).allowed).toBe(true)
  })

  it('keeps its state small: 33 bytes and 8 a slice', () => {
    const newest = { periodUs: 10, sliceUs: 1, atUs: 100, counts: [1, 2, 3] }
    const state = { code: 4, newest, other: undefined }
    const raw = slidingWindowCodec.encode(state)
    expect([raw.length, slidingWindowCodec.decode(raw)]).toEqual([33 + 3 * 8, state])
  })
})
