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
    [{ limit: 5, period: '1s', align: 'calender' }, 'align'],
    [{ limit: 5, period: '1d', align: 'calendar' }, 'period'],
    [{ limit: 5, period: 'fortnight', align: 'calendar' }, 'period'],
    [{ limit: 5, period: 'month' }, 'period'],
    [{ limit: 5, period: 'day', align: 'calendar', timeZone: 'Mars/Olympus' }, 'timeZone'],
    [{ limit: 5, period: 'day', align: 'calendar', timeZone: '+08:00' }, 'timeZone'],
    [{ limit: 5, period: 'day', align: 'calendar', timeZone: '' }, 'timeZone'],
    [{ limit: 5, period: 'day', align: 'calendar', timeZone: null }, 'timeZone'],
    [{ limit: 5, period: '1d', timeZone: 'UTC' }, 'timeZone'],
    [{ limit: 5, period: '1d', anchorDay: 1 }, 'anchorDay'],
    [{ limit: 5, period: 'day', align: 'calendar', anchorDay: 1 }, 'anchorDay'],
    [{ limit: 5, period: 'year', align: 'calendar', anchorDay: 1 }, 'anchorDay'],
    [{ limit: 5, period: 'week', align: 'calendar', anchorDay: 8 }, 'anchorDay'],
    [{ limit: 5, period: 'month', align: 'calendar', anchorDay: 0 }, 'anchorDay'],
    [{ limit: 5, period: 'month', align: 'calendar', anchorDay: 32 }, 'anchorDay'],
    [{ limit: 5, period: 'month', align: 'calendar', anchorDay: '1' }, 'anchorDay'],
    [{ limit: 5, period: '1d', scope: 'shared' }, 'scope'],
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

describe('a fixed window of a calendar', () => {
  const monthly = fixedWindow({
    limit: 3,
    period: 'month',
    align: 'calendar',
    timeZone: 'Asia/Shanghai',
    anchorDay: 31,
  })

  it('begins anew when the calendar says so, and says how long that is', async () => {
    const traced = traceLimit(monthly, Date.parse('2026-02-27T15:59:59Z'))
    expect(statusOf(await traced.check(3))).toMatchObject({ limit: 3, periodMs: 30 * 86_400_000, remaining: 0 })
    expect((await traced.check()).retryAfterMs).toBe(1000)
    // February has no 31st: the window begins with the 28th, which has come in Shanghai.
    traced.clock.advance(1000)
    expect(statusOf(await traced.check(3))).toMatchObject({ remaining: 0, resetAfterMs: 31 * 86_400_000 })
  })

  it('tells calendars apart whose windows differ, and no others', () => {
    const wire = (timeZone: string, period = 'day') =>
      fixedWindow({ limit: 3, period, align: 'calendar', timeZone }).wire
    expect(wire('UTC')).toEqual(wire('utc'))
    expect(wire('UTC')).not.toEqual(wire('Asia/Shanghai'))
    expect(wire('UTC')).not.toEqual(wire('UTC', 'week'))
  })

  it('lets a window that is open end when it said it would, whatever calendar a caller knows', async () => {
    const daily = (timeZone: string) => fixedWindow({ limit: 3, period: 'day', align: 'calendar', timeZone })
    const traced = traceLimit(daily('UTC'), Date.parse('2026-03-01T15:59:59Z'))
    expect((await traced.check(2)).allowed).toBe(true)
    traced.clock.advance(2000)
    // A new day in Shanghai, but not for this counter.
    expect(statusOf(await traced.check(1, daily('Asia/Shanghai'))).remaining).toBe(0)
    expect((await traced.check(1, daily('Asia/Shanghai'))).retryAfterMs).toBe(8 * 3_600_000 - 1000)
  })
})

describe("an instance's share of a fixed window", () => {
  it('is N/k of the same window; where that is less than one unit, one unit in k/N windows', () => {
    const window = fixedWindow({ limit: 10, period: '1s' })
    expect(window.share(4).wire).toEqual([2, 2, 1_000_000, 0, 0, 0])
    expect(window.share(15).wire).toEqual([2, 1, 1_500_000, 1, 0, 0])
    expect(window.share(1)).toBe(window)
  })

  it('of a calendar keeps its windows', () => {
    const daily = fixedWindow({ limit: 10, period: 'day', align: 'calendar', timeZone: 'Asia/Shanghai' })
    const nowUs = Date.parse('2026-11-30T12:00Z') * 1000
    expect(daily.share(4).wireAt?.(nowUs).slice(4)).toEqual(daily.wireAt?.(nowUs).slice(4))
    expect(daily.share(4).limit).toBe(2)
    expect(daily.share(20).wire.slice(1, 4)).toEqual([1, 2 * daily.spanUs, 1])
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
