import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import type { FixedWindowState } from './algorithms/fixed-window/step.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { Leases, type LeasingStore } from './lease.ts'
import type { Limit } from './limit.ts'
import type { Slots } from './script/judging.ts'
import { type ChangeListener, type Check, type Operation, type Part, StoreFault, type Verdict } from './store.ts'
import { memoryStore } from './stores/memory.ts'

const RUNS = Number(process.env.LAW_RUNS ?? 200)
const START_US = Date.UTC(2026, 0, 1) * 1000
const TIMEOUT_MS = 50

/** What becomes of calls of the store. */
interface Line {
  readonly fate: 'answered' | 'refused' | 'request lost' | 'answer lost'
  readonly thereMs: number
  readonly backMs: number
}

type Step =
  | { do: 'use'; holder: number; times: number; cost: number; gapMs: number }
  | { do: 'exact'; cost: number }
  | { do: 'take all' }
  | { do: 'wait'; ms: number }
  | { do: 'line'; holder: number; line: Line }
  | { do: 'crash' | 'close'; holder: number }
  | Operating

interface Operating {
  readonly do: 'reset' | 'block' | 'unblock'
  readonly told: boolean
}

interface Use {
  readonly atUs: number
  readonly units: number
  /** Of a window. */
  readonly endUs: number
}

/** Some holders before one counter, on one simulated clock. */
class World {
  readonly uses: Use[] = []
  leased = 0
  private readonly part: Part
  private readonly store = memoryStore({ clock: () => this.nowUs })
  private readonly listeners = new Set<ChangeListener>()
  private readonly lines: Line[] = []
  private readonly holders: Leases[]
  private readonly skews: readonly number[]

  constructor(limit: Limit, skews: readonly number[]) {
    this.part = { name: 'l', limit, space: 'l:', value: 'k', cost: 1, onStoreFailure: 'local', accuracy: 'lease' }
    this.skews = skews
    this.holders = skews.map((_, i) => this.holder(i))
  }

  get nowUs(): number {
    return START_US + Math.round(performance.now() * 1000)
  }

  get slot(): ReturnType<Slots['find']> {
    return (this.store as unknown as Slots).find('l:', 'k')
  }

  async step(step: Step): Promise<void> {
    if (step.do === 'wait') await vi.advanceTimersByTimeAsync(step.ms)
    else if (step.do === 'use') await this.use(step)
    else if (step.do === 'exact') this.exact(step.cost)
    else if (step.do === 'take all') this.exact(this.room())
    else if (step.do === 'line') this.lines[step.holder % this.skews.length] = step.line
    else if (step.do === 'crash') this.holders[step.holder % this.skews.length] = this.holder(step.holder)
    else if (step.do === 'close') await this.close(step.holder % this.skews.length)
    else await this.operate(step as Operating)
  }

  /** Units that a check would find. */
  room(): number {
    const { limit } = this.part
    const { view, at } = this.judge({ parts: [this.part], peek: true })
    return limit.room(view, at)
  }

  /** Every holder with a clock that runs a little too fast or too slow. */
  private holder(i: number): Leases {
    const own = i % this.skews.length
    const clock = () => performance.now() * (this.skews[own] as number) + own * 12_345.678
    return new Leases(this.behind(own), TIMEOUT_MS, clock)
  }

  private behind(holder: number): LeasingStore {
    return {
      run: (check) => this.carry(check, this.lines[holder] ?? { fate: 'answered', thereMs: 0, backMs: 0 }),
      watchChanges: (listener) => {
        this.listeners.add(listener)
        return () => void this.listeners.delete(listener)
      },
    }
  }

  private carry(check: Check, { fate, thereMs, backMs }: Line): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      if (fate === 'refused') return reject(new StoreFault('connection', 'refused', true))
      setTimeout(() => reject(new StoreFault('timeout', 'late', false)), TIMEOUT_MS)
      if (fate === 'request lost') return undefined
      return setTimeout(() => {
        const verdict = this.judge(check)
        const own = { ...verdict, view: [...verdict.view] }
        if (fate === 'answered') setTimeout(() => resolve(own), backMs)
      }, thereMs)
    })
  }

  private judge(check: Check): Verdict {
    return this.store.judge(check)
  }

  private async use({ holder, times, cost, gapMs }: Step & { do: 'use' }): Promise<void> {
    const leases = this.holders[holder % this.skews.length] as Leases
    for (let i = 0; i < times; i++) {
      const decision = leases.find({ parts: [{ ...this.part, cost }], peek: false })
      if (decision === undefined) this.exact(cost)
      else {
        expect(decision.at * 1000).toBeLessThanOrEqual(this.nowUs + 1)
        this.leased += 1
        this.used(cost)
      }
      if (gapMs > 0) await vi.advanceTimersByTimeAsync(gapMs)
    }
  }

  private exact(cost: number): void {
    if (cost > 0 && this.judge({ parts: [{ ...this.part, cost }], peek: false }).allowed) this.used(cost)
  }

  private used(units: number): void {
    this.uses.push({ atUs: this.nowUs, units, endUs: (this.slot?.state as FixedWindowState)?.endUs ?? 0 })
  }

  private async close(own: number): Promise<void> {
    const leases = this.holders[own] as Leases
    this.holders[own] = this.holder(own)
    void leases.close()
    await vi.advanceTimersByTimeAsync(1)
  }

  private async operate({ do: name, told }: Operating): Promise<void> {
    const operation: Operation = { name, args: name === 'block' ? [500_000] : [] }
    this.judge({ parts: [this.part], peek: false, operation })
    if (told) for (const { onChange } of this.listeners) onChange('l:k', true)
    // From here on the law begins anew.
    if (name === 'reset') this.uses.length = 0
    await vi.advanceTimersByTimeAsync(1)
  }
}

/** By how much the law is broken at most, in parts (of a window: units); below 0: not at all. */
function overshoot(limit: Limit, uses: readonly Use[]): number {
  if (limit.algorithm === 'fixed-window') {
    const windows = new Map<number, number>()
    for (const { units, endUs, atUs } of uses) {
      expect(endUs).toBeGreaterThan(atUs)
      windows.set(endUs, (windows.get(endUs) ?? 0) + units)
    }
    return Math.max(0, ...windows.values()) - limit.limit
  }
  return Math.max(...levels(limit, uses)) - limit.capacity * (limit.wire[2] as number)
}

/** How much of a bucket is in use after each use, in parts. */
function levels({ wire: [, rate = 0, grain = 0] }: Limit, uses: readonly Use[]): number[] {
  const found = [0]
  let level = 0
  let lastUs = 0
  for (const { atUs, units } of uses) {
    level = Math.max(0, level - (atUs - lastUs) * rate) + units * grain
    lastUs = atUs
    found.push(level)
  }
  return found
}

const holder = fc.nat(3)
const fates = fc.constantFrom<Line['fate']>(
  'answered',
  'answered',
  'answered',
  'refused',
  'request lost',
  'answer lost',
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('use' as const),
      holder,
      times: fc.integer({ min: 1, max: 120 }),
      cost: fc.constantFrom(1, 1, 1, 2, 3),
      gapMs: fc.constantFrom(0, 0, 0, 1, 2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('exact' as const), cost: fc.integer({ min: 1, max: 150 }) }) },
  { weight: 2, arbitrary: fc.constant({ do: 'take all' as const }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.oneof({ weight: 3, arbitrary: fc.nat(20) }, fc.nat(300), fc.integer({ min: 900, max: 1100 })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('line' as const),
      holder,
      line: fc.record({ fate: fates, thereMs: fc.nat(30), backMs: fc.nat(30) }),
    }),
  },
  fc.record({ do: fc.constantFrom<'crash' | 'close'>('crash', 'close'), holder }),
  fc.record({ do: fc.constantFrom<'reset' | 'block' | 'unblock'>('reset', 'block', 'unblock'), told: fc.boolean() }),
)
const limits: fc.Arbitrary<Limit> = fc.oneof(
  fc
    .tuple(fc.integer({ min: 50, max: 3000 }), fc.integer({ min: 200, max: 1500 }))
    .map(([limit, burst]) => tokenBucket({ limit, period: '1s', burst })),
  fc
    .tuple(
      fc.integer({ min: 200, max: 1500 }),
      fc.integer({ min: 150, max: 2500 }),
      fc.constantFrom<'clock' | 'first-hit'>('clock', 'first-hit'),
    )
    .map(([limit, period, align]) => fixedWindow({ limit, period, align })),
)
const skews = fc.array(fc.double({ min: 0.992, max: 1.008, noNaN: true }), { minLength: 1, maxLength: 4 })

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('what is taken ahead', () => {
  it('does not drain: of 1600/s, 100 that A took at 0 s are not there for B at 1 s, while A may still use them', () => {
    let nowUs = START_US
    const store = memoryStore({ clock: () => nowUs })
    const limit = tokenBucket({ limit: 1600, period: '1s' })
    const part: Part = { name: 'l', limit, space: 'l:', value: 'k', cost: 1, onStoreFailure: 'local' }
    const ask = (name: 'lease' | 'take-up-to', ...args: number[]) =>
      store.judge({ parts: [part], peek: false, operation: { name, args } }).result
    expect(ask('lease', 1, 500, 0)).toBe(100)
    nowUs += 999_999
    expect(ask('take-up-to', 1600)).toBe(1500)
    // A has used 40 and gives the rest back: those 40 drain from now on.
    expect(ask('lease', 1, 0, 40)).toBe(0)
    expect(ask('take-up-to', 1600)).toBe(60)
  })

  it('keeps the law of the limit on the instants of use, whatever is lost and whoever dies, and ends', async () => {
    let leased = 0
    await fc.assert(
      fc.asyncProperty(limits, skews, fc.array(step, { minLength: 5, maxLength: 60 }), async (limit, some, steps) => {
        vi.clearAllTimers()
        const world = new World(limit, some)
        for (const each of steps) await world.step(each)
        expect(overshoot(limit, world.uses)).toBeLessThanOrEqual(0)
        leased += world.leased
        // Whoever holds something has died by then: what it did not report counts as used ...
        await vi.advanceTimersByTimeAsync(1000)
        expect(world.slot?.mark?.leases.length ?? 0).toBeLessThanOrEqual(64)
        if (limit.algorithm === 'token-bucket') {
          const [, rate = 0, grain = 0] = limit.wire
          const last = world.uses.at(-1)?.atUs ?? world.nowUs
          const level = (levels(limit, world.uses).at(-1) as number) - (world.nowUs - last) * rate
          expect(world.room() * grain).toBeLessThanOrEqual(limit.capacity * grain - level)
        }
        // ... and nothing is held for ever.
        await vi.advanceTimersByTimeAsync(2000 + limit.spanUs / 1000)
        expect(world.room()).toBe(limit.capacity)
      }),
      { numRuns: RUNS },
    )
    // The traces are of leases, not of exact decisions.
    expect(leased).toBeGreaterThan(RUNS)
  })
})
