import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { chargesOf, deriveDecision, resultOf } from './derive.ts'
import type { Limit } from './limit.ts'
import type { Charge } from './receipt.ts'
import type { Operation, Part } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/fake-clock.ts'

const RUNS = Number(process.env.LAW_RUNS ?? 200)
const LONG_US = 1e12

/** Somebody who was let in, now or at its turn. */
interface Place {
  readonly ticket: number
  readonly cost: number
  readonly turnUs: number
  readonly charge: Charge
  left: boolean
}

/** Callers before one counter: some go before their turn, and some say so twice. */
class Queue {
  readonly clock = fakeClock()
  readonly places: Place[] = []
  /** Where each costs one unit: the turns that were given up and that nobody has taken since, in order. */
  free: number[] = []
  private readonly store = memoryStore({ clock: this.clock })
  private readonly limit: Limit
  private readonly costs: number

  /** @param costs the most that anybody costs */
  constructor(limit: Limit, costs: number) {
    this.limit = limit
    this.costs = costs
  }

  private part(cost: number, id = 0): Part {
    return { name: 'one', limit: this.limit, space: 'one:', value: '', cost, id, onStoreFailure: 'local' }
  }

  used(): number {
    return this.store.judge({ parts: [this.part(0)], peek: true }).view[0] as number
  }

  come(cost: number, waits: boolean): void {
    const ticket = this.places.length + 1
    const operation: Operation | undefined = waits ? { name: 'book', args: [LONG_US, ticket, 1, 1] } : undefined
    const check = { parts: [this.part(cost)], peek: false, operation }
    const before = this.used()
    const verdict = this.store.judge(check)
    const { allowed, receiptUs } = verdict
    const decision = deriveDecision(check, verdict, 'store', false)
    if (!allowed) return
    const turnUs = waits ? (resultOf(decision) as number) : this.clock() + Math.round(decision.delayMs * 1000)
    expect(turnUs).toBeGreaterThanOrEqual(this.clock())
    if (waits) expect(turnUs).toBeGreaterThanOrEqual(this.clock() + Math.floor(decision.delayMs * 1000))
    if (receiptUs > 0) {
      // It was charged when it was booked, and is still to come.
      expect([this.used(), turnUs > this.clock()]).toEqual([before, true])
    }
    this.take(turnUs, receiptUs > 0)
    this.places.push({ ticket, cost, turnUs, charge: chargesOf(decision)[0] as Charge, left: false })
  }

  /** @param again what left before says so once more */
  leave(which: number, again: boolean): void {
    const some = this.places.filter(({ left, turnUs }) => (again ? left : !left && turnUs > this.clock()))
    const place = some[which % (some.length || 1)]
    if (place === undefined) return
    const { ticket, cost, turnUs, charge } = place
    const operation: Operation = { name: 'vacate', args: [ticket, charge.chargedUs, turnUs] }
    const before = this.used()
    const verdict = this.store.judge({ parts: [this.part(cost, charge.instantUs)], peek: false, operation })
    expect([again, verdict.view[0]]).toEqual([again, again ? 0 : verdict.view[0]])
    if (again) expect(this.used()).toBe(before)
    if (again) return
    place.left = true
    // What came back are the last turns.
    this.free = [...this.free, turnUs].toSorted((a, b) => a - b)
    this.free.length -= Math.min(this.free.length, verdict.view[0] as number)
  }

  /** Whether somebody who comes later would get a turn that was given up, and did. */
  private take(turnUs: number, given: boolean): void {
    if (this.costs > 1) return
    const place = this.free.findIndex((freeUs) => freeUs > this.clock() && freeUs < turnUs + (given ? 1 : 0))
    expect([given, place >= 0 ? this.free.splice(place, 1)[0] : undefined]).toEqual([given, given ? turnUs : undefined])
  }

  get starts(): Place[] {
    return this.places.filter(({ left }) => !left).toSorted((a, b) => a.turnUs - b.turnUs)
  }
}

/** Whether the law of the limit lets these start when they do. */
function isLawful({ algorithm, limit, capacity, periodUs }: Limit, starts: readonly Place[]): boolean {
  if (algorithm === 'fixed-window') {
    const windows = new Map<number, number>()
    for (const { turnUs, cost } of starts) {
      const window = Math.floor(turnUs / periodUs)
      windows.set(window, (windows.get(window) ?? 0) + cost)
    }
    return [...windows.values()].every((units) => units <= limit)
  }
  if (algorithm === 'leaky-bucket') {
    // The last unit of each proceeds at its turn, those before it one by one; each turn is rounded up, where a place was
    // divided twice.
    return starts.every(({ turnUs, cost }, i) => {
      const { turnUs: beforeUs } = starts[i - 1] ?? { turnUs: Number.NEGATIVE_INFINITY }
      return turnUs - beforeUs + 4 >= (cost * periodUs) / limit
    })
  }
  return starts.every(({ turnUs: firstUs }, i) => {
    let units = 0
    return starts.slice(i).every(({ turnUs, cost }) => {
      units += cost
      return units <= capacity + ((turnUs - firstUs + 1) * limit) / periodUs
    })
  })
}

type Step =
  | { do: 'wait'; us: number }
  | { do: 'come'; cost: number; waits: boolean }
  | { do: 'leave'; which: number; again: boolean }

const steps = (most: number, checks: boolean): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ do: fc.constant('wait' as const), us: fc.integer({ min: 0, max: 700_000 }) }),
      },
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant('come' as const),
          cost: fc.integer({ min: 1, max: most }),
          waits: checks ? fc.integer({ min: 0, max: 9 }).map((n) => n > 0) : fc.constant(true),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          do: fc.constant('leave' as const),
          which: fc.nat(20),
          again: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
        }),
      },
    ),
    { minLength: 5, maxLength: 50 },
  )

function play(limit: Limit, costs: number, trace: readonly Step[], each?: (queue: Queue) => void): Queue {
  const queue = new Queue(limit, costs)
  for (const step of trace) {
    if (step.do === 'wait') queue.clock.advanceUs(step.us)
    else if (step.do === 'come') queue.come(step.cost, step.waits)
    else queue.leave(step.which, step.again)
    each?.(queue)
  }
  return queue
}

const few = fc.integer({ min: 1, max: 7 })
const LINES: [string, fc.Arbitrary<Limit>][] = [
  ['a token bucket', fc.tuple(few, few).map(([limit, burst]) => tokenBucket({ limit, period: '1s', burst }))],
  ['a leaky bucket', few.map((limit) => leakyBucket({ limit, period: '1s', queue: 12 }))],
  ['a fixed window', few.map((limit) => fixedWindow({ limit, period: '1s' }))],
]

describe('a line before', () => {
  it.each(LINES)('%s starts nobody before its law lets it, whoever leaves, and says so twice', (_name, limits) => {
    fc.assert(
      fc.property(limits, steps(3, true), (limit, trace) => {
        play(limit, 3, trace, (queue) => {
          expect([isLawful(limit, queue.starts), queue.starts]).toEqual([true, queue.starts])
        })
      }),
      { numRuns: RUNS },
    )
  })

  it.each(LINES)('%s wastes no turn that somebody came for in time', (_name, limits) => {
    let compared = 0
    fc.assert(
      fc.property(limits, steps(1, false), (limit, trace) => {
        const queue = play(limit, 1, trace)
        if (queue.free.length > 0) return
        compared += 1
        // The same callers without those who left: the turns are the same ones.
        const left = new Set(queue.places.filter((place) => place.left).map(({ ticket }) => ticket))
        let ticket = 0
        const others = trace.filter((step) => step.do === 'wait' || (step.do === 'come' && !left.has(++ticket)))
        const turns = play(limit, 1, others).starts.map(({ turnUs }) => turnUs)
        expect(queue.starts.length).toBe(turns.length)
        for (const [i, { turnUs }] of queue.starts.entries()) {
          expect(Math.abs(turnUs - (turns[i] as number))).toBeLessThanOrEqual(2)
        }
      }),
      { numRuns: RUNS },
    )
    expect(compared).toBeGreaterThan(RUNS / 4)
  })
})
