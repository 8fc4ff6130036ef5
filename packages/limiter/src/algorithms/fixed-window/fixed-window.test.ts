import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sized } from '../../../../../test/arbitraries.ts'
import { fixedWindows } from '../../../../../test/limit-arbitraries.ts'
import { statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { fixedWindow } from './index.ts'

const NEVER = Number.POSITIVE_INFINITY

/** ms since the start, cost, then: allowed, remaining, retryAfterMs, ms until the window ends (0 when unused). */
type Row = [atMs: number, cost: number, allowed: boolean, remaining: number, retry: number, left: number]

/** The trace begins 4 s into a minute. */
const START_MS = Date.UTC(2026, 5, 1, 12, 0, 4)

const examples: { name: string; options: Parameters<typeof fixedWindow>[0]; rows: Row[] }[] = [
  {
    name: 'from the clock: windows of 10 s begin at whole tens',
    options: { limit: 5, period: '10s' },
    rows: [
      [0, 3, true, 2, 0, 6000],
      [1000, 3, false, 2, 5000, 5000],
      [1000, 2, true, 0, 0, 5000],
      [5999.999, 1, false, 0, 0.001, 0.001],
      [6000, 5, true, 0, 0, 10_000],
      [6000, 6, false, 0, NEVER, 10_000],
      [16_000, 0, true, 5, 0, 0],
    ],
  },
  {
    name: "from the first hit: a window begins with a key's first admitted request",
    options: { limit: 5, period: '10s', align: 'first-hit' },
    rows: [
      [0, 6, false, 5, NEVER, 0],
      [1000, 3, true, 2, 0, 10_000],
      [9000, 3, false, 2, 2000, 2000],
      [10_999.999, 2, true, 0, 0, 0.001],
      [11_000, 5, true, 0, 0, 10_000],
      [21_500, 1, true, 4, 0, 10_000],
    ],
  },
  {
    name: 'one a year',
    options: { limit: 1, period: '365d', align: 'first-hit' },
    rows: [
      [0, 1, true, 0, 0, 31_536_000_000],
      [31_535_999_999.999, 1, false, 0, 0.001, 0.001],
      [31_536_000_000, 1, true, 0, 0, 31_536_000_000],
    ],
  },
  {
    name: 'five million a second, by cost',
    options: { limit: 5_000_000, period: '1s' },
    rows: [
      [0, 4_999_999, true, 1, 0, 1000],
      [0.001, 2, false, 1, 999.999, 999.999],
      [0.001, 1, true, 0, 0, 999.999],
    ],
  },
  {
    name: '0 refuses all, also what costs nothing',
    options: { limit: 0, period: '1s' },
    rows: [
      [0, 1, false, 0, NEVER, 0],
      [0, 0, false, 0, NEVER, 0],
    ],
  },
]

describe.each(examples)('fixed window $name', ({ options, rows }) => {
  it('decides as worked out by hand', async () => {
    const limit = fixedWindow(options)
    const traced = traceLimit(limit, START_MS)
    for (const [atMs, cost, allowed, remaining, retryAfterMs, leftMs] of rows) {
      traced.clock.advanceUs(Math.round(atMs * 1000) - traced.atUs)
      const decision = await traced.check(cost)
      const said = { atMs, cost, allowed: decision.allowed, retryAfterMs: decision.retryAfterMs }
      expect(said).toEqual({ atMs, cost, allowed, retryAfterMs })
      expect(statusOf(decision)).toEqual({
        name: 'traced',
        limit: options.limit,
        capacity: options.limit,
        periodMs: limit.periodUs / 1000,
        remaining,
        retryAfterMs,
        nextMs: leftMs,
        resetAfterMs: leftMs,
      })
    }
  })
})

describe('the numbers of a fixed window', () => {
  it.each([
    [{ limit: -1, period: '1s' }, 'limit'],
    [{ limit: Number.NaN, period: '1s' }, 'limit'],
    [{ limit: '5', period: '1s' }, 'limit'],
    [{ limit: 5 }, 'period'],
    [{ limit: 5, period: '0s' }, 'period'],
    [{ limit: 5, period: '3661d' }, 'period'],
    [{ limit: 5, period: '1s', align: 'calendar' }, 'align'],
    [{ limit: 5, period: '1s', align: null }, 'align'],
    [{ limit: 5, period: '1s', burst: 9 }, 'fixedWindow.burst'],
    [undefined, 'fixedWindow'],
  ])('refuses %j and names what is wrong', (options, argument) => {
    try {
      fixedWindow(options as never)
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidArgumentError)
      expect((error as InvalidArgumentError).argument).toBe(argument)
      return
    }
    throw new Error('accepted')
  })
})

describe("an instance's share of a fixed window", () => {
  it('is N/k of the same window; where that is less than one unit, one unit in k/N windows', () => {
    const window = fixedWindow({ limit: 10, period: '1s' })
    expect(window.share(4).wire).toEqual([2, 2, 1_000_000, 0, 0, 0])
    expect(window.share(15).wire).toEqual([2, 1, 1_500_000, 1, 0, 0])
    expect(window.share(1)).toBe(window)
  })

  it('keeps the law: k shares together admit at most N a window, or with k above N at most N·T/P and k at once', () => {
    fc.assert(
      fc.property(fixedWindows, sized(100_000, 1), (window, instances) => {
        const share = window.share(instances)
        const [n, p, k] = [BigInt(window.limit), BigInt(window.periodUs), BigInt(instances)]
        const [shareN, shareP] = [BigInt(share.limit), BigInt(share.periodUs)]
        if (window.limit >= instances) expect([k * shareN <= n, shareP]).toEqual([true, p])
        else expect([share.limit, k * p <= n * shareP || shareP === 2n ** 51n]).toEqual([1, true])
        expect(Number.isSafeInteger(share.periodUs)).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })
})
