import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type CheckItem,
  concurrency,
  createEngine,
  type Engine,
  fixedWindow,
  type Limit,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from './index.ts'
import { type FakeClock, fakeClock } from './testing/fake-clock.ts'

const ALGORITHMS: { readonly [name: string]: (limit: number, period: number) => Limit } = {
  'token-bucket': (limit, period) => tokenBucket({ limit, period }),
  'leaky-bucket': (limit, period) => leakyBucket({ limit, period, queue: limit }),
  'fixed-window': (limit, period) => fixedWindow({ limit, period }),
  calendar: (limit) => fixedWindow({ limit, period: 'hour', align: 'calendar' }),
  'sliding-window': (limit, period) => slidingWindow({ limit, period }),
  'sliding-log': (limit, period) => slidingLog({ limit, period }),
  concurrency: (limit, period) => concurrency({ limit, ttl: period }),
}

const names = Object.keys(ALGORITHMS)
const pairs = names.flatMap((from) =>
  names
    .filter((to) => to !== from && [from, to].sort().join() !== 'calendar,fixed-window')
    .map((to): [string, string] => [from, to]),
)
const period = fc.constantFrom(1000, 60_000, 3_600_000)
const units = fc.integer({ min: 1, max: 5 })
const waits = fc.integer({ min: 1, max: 90 }).map((percent) => percent / 100)
const changes = fc.record({
  numbers: fc.tuple(period, period),
  charged: units,
  others: units,
  waits: fc.tuple(waits, waits, waits),
  back: fc.boolean(),
})

interface Books {
  readonly clock: FakeClock
  readonly engine: Engine
  item(name: string, cost: number): CheckItem[]
}

function open([first, second]: readonly [number, number], from: string): Books {
  const clock = fakeClock()
  return {
    clock,
    engine: createEngine({ store: memoryStore({ clock }) }),
    item: (name, cost) => {
      const limit = (ALGORITHMS[name] as (typeof ALGORITHMS)[string])(20, name === from ? first : second)
      return [{ rule: 'api', name: 'user', limit, key: 'ann', cost }]
    },
  }
}

/** What is left by whatever algorithm, and when there is more. */
async function left({ engine, item }: Books, name: string): Promise<unknown> {
  const status = (await engine.peek(item(name, 0))).limits[0]
  return [status?.remaining, status?.resetAfterMs]
}

/** A charge under one algorithm; then its rule has another, or has had one for a while, and others are charged. */
describe.each(pairs)('a charge of a %s whose rule became a %s', (from, to) => {
  const part = (numbers: readonly [number, number], share: number) => Math.max(1, Math.ceil(numbers[0] * share))

  it('gives nothing back by its receipt once others were charged, nor does its hold when it is settled', async () => {
    const property = fc.asyncProperty(changes, async ({ numbers, charged, others, waits: [one, two, three], back }) => {
      const books = open(numbers, from)
      const { clock, engine, item } = books
      const { receipt } = await engine.check(item(from, charged))
      const slots = from === 'concurrency'
      const lapse = 10 * 3_600_000
      if (!slots) {
        await engine.reserve(item(from, charged), { id: 'held', holdMs: lapse })
        await engine.reserve(item(from, charged), { id: 'lapses', holdMs: part(numbers, one + two) + 2 })
      }
      clock.advance(part(numbers, one))
      await engine.check(item(to, others))
      if (back) {
        clock.advanceUs(1)
        await engine.check(item(from, others))
      }
      const now = back ? from : to
      clock.advance(part(numbers, two))
      const before = await left(books, now)
      if (receipt !== undefined) expect(await engine.refund(item(now, charged), { receipt })).toEqual([0])
      if (!slots && now !== 'concurrency') await engine.reservation(item(now, 1), 'held').cancel()
      expect(await left(books, now)).toEqual(before)
      clock.advance(part(numbers, three))
      const untouched = await replayed(numbers, { from, to, charged, others, back, waits: [one, two, three], slots })
      expect(await left(books, now)).toEqual(untouched)
      await engine.close()
    })
    await fc.assert(property, { numRuns: Number(process.env.LAW_RUNS ?? 30) })
  })

  it('does not keep the charges after it from being given back', async () => {
    if (to === 'concurrency') return
    const { clock, engine, item } = open([3_600_000, 3_600_000], from)
    await engine.check(item(from, 2))
    clock.advance(1000)
    const { receipt = '' } = await engine.check(item(to, 3))
    const { reservation } = await engine.reserve(item(to, 3), { id: 'x' })
    await reservation?.cancel()
    expect(await engine.refund(item(to, 3), { receipt })).toEqual([3])
    await engine.close()
  })
})

/** The same charges with nothing given back: held under no id. */
async function replayed(
  numbers: [number, number],
  trace: {
    from: string
    to: string
    charged: number
    others: number
    back: boolean
    waits: readonly [number, number, number]
    slots: boolean
  },
): Promise<unknown> {
  const books = open(numbers, trace.from)
  const { clock, engine, item } = books
  const ms = trace.waits.map((share) => Math.max(1, Math.ceil(numbers[0] * share))) as [number, number, number]
  for (let i = 0; i < (trace.slots ? 1 : 3); i++) await engine.check(item(trace.from, trace.charged))
  clock.advance(ms[0])
  await engine.check(item(trace.to, trace.others))
  if (trace.back) {
    clock.advanceUs(1)
    await engine.check(item(trace.from, trace.others))
  }
  clock.advance(ms[1] + ms[2])
  const end = await left(books, trace.back ? trace.from : trace.to)
  await engine.close()
  return end
}

describe('a charge of a window that a shorter period ended', () => {
  const minute = 60_000
  const periods = fc.constantFrom(minute, 10 * minute, 60 * minute)
  const steps = fc.array(fc.record({ period: periods, waitMs: fc.integer({ min: 1, max: 70 * minute }), units }), {
    minLength: 2,
    maxLength: 6,
  })

  it.each(['clock', 'first-hit'] as const)(
    'gives nothing back of what others were charged in the next, though it ends at the same instant (%s)',
    async (align) => {
      const property = fc.asyncProperty(steps, async (trace) => {
        const clock = fakeClock()
        const engine = createEngine({ store: memoryStore({ clock }) })
        const item = (period: number, cost: number) => [
          { name: 'user', limit: fixedWindow({ limit: 100, period, align }), key: 'ann', cost },
        ]
        const first = await engine.check(item(60 * minute, 7))
        let ended = false
        let openUntilMs = first.at + (first.limits[0]?.resetAfterMs ?? 0)
        let period = 60 * minute
        for (const step of trace) {
          clock.advance(step.waitMs)
          period = step.period
          const { at, limits } = await engine.check(item(period, step.units))
          const endMs = at + (limits[0]?.resetAfterMs ?? 0)
          if (at >= openUntilMs || endMs !== openUntilMs) ended = true
          openUntilMs = endMs
        }
        const [back] = await engine.refund(item(period, 7), { receipt: first.receipt as string })
        expect(back).toBe(ended ? 0 : 7)
        await engine.close()
      })
      await fc.assert(property, { numRuns: Number(process.env.LAW_RUNS ?? 300) })
    },
  )
})
