import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import type { Limit } from '../limit.ts'
import type { OperationName, Part, Verdict } from '../store.ts'
import { memoryStore } from '../stores/memory.ts'
import { LEASE_US } from './marks.ts'

const RUNS = Number(process.env.LAW_RUNS ?? 5000)
const START_US = Date.UTC(2026, 0, 1) * 1000

type Step =
  | { do: 'ask'; holder: number; wanted: number; answer: 'heard' | 'lost' | 'never sent' }
  | { do: 'use'; holder: number; part: number }
  | { do: 'use at last'; holder: number }
  | { do: 'take'; part: number }
  | { do: 'wait'; us: number }

/** A holder that uses what it has at any instant until the very end, and reports when it asks. */
interface Holder {
  id: number
  left: number
  spent: number
  tillUs: number
}

/** Holders before one counter, and what was used of it. */
class Ledger {
  readonly uses: { atUs: number; units: number }[] = []
  readonly limit: Limit
  nowUs = START_US
  private readonly part: Part
  private readonly store = memoryStore({ clock: () => this.nowUs })
  private readonly holders: Holder[] = [1, 2, 3].map((id) => ({ id, left: 0, spent: 0, tillUs: 0 }))
  private ids = 10

  constructor(limit: Limit) {
    this.limit = limit
    this.part = { name: 'l', limit, space: 'l:', value: 'k', cost: 1, onStoreFailure: 'local' }
  }

  step(step: Step): void {
    if (step.do === 'wait') this.nowUs += step.us
    else if (step.do === 'take') this.take(Math.ceil(this.room() * step.part))
    else if (step.do === 'use at last') this.useAtLast(this.holders[step.holder] as Holder)
    else if (step.do === 'use') this.use(this.holders[step.holder] as Holder, step.part)
    else this.ask(this.holders[step.holder] as Holder, step)
  }

  room(): number {
    const { view, at } = this.store.judge({ parts: [this.part], peek: true })
    return this.limit.room(view, at)
  }

  private judge(name: OperationName, ...args: number[]): Verdict {
    return this.store.judge({ parts: [this.part], peek: false, operation: { name, args } })
  }

  private take(units: number): void {
    const taken = units > 0 ? this.judge('take-up-to', units).result : 0
    if (taken > 0) this.uses.push({ atUs: this.nowUs, units: taken })
  }

  private use(holder: Holder, part: number): void {
    const units = this.nowUs < holder.tillUs ? Math.ceil(holder.left * part) : 0
    holder.left -= units
    holder.spent += units
    if (units > 0) this.uses.push({ atUs: this.nowUs, units })
  }

  /** All that is left, a µs before it ends. */
  private useAtLast(holder: Holder): void {
    if (this.nowUs >= holder.tillUs) return
    this.nowUs = holder.tillUs - 1
    this.use(holder, 1)
    this.nowUs += 1
  }

  private ask(holder: Holder, { wanted, answer }: Step & { do: 'ask' }): void {
    const { id, spent } = holder
    if (answer !== 'never sent') {
      const { view, at, result } = this.judge('lease', id, wanted, spent)
      holder.left = result
      holder.spent = 0
      holder.tillUs = Math.min(this.nowUs + LEASE_US, this.limit.leaseEndUs?.(view, at) ?? Number.POSITIVE_INFINITY)
    }
    if (answer !== 'heard') Object.assign(holder, { id: this.ids++, left: 0, spent: 0 })
  }
}

/** The most that counted at once, in parts (of a window: units). */
function most(limit: Limit, uses: Ledger['uses']): number {
  const [, rate = 0, grain = 0] = limit.wire
  let level = 0
  let found = 0
  let lastUs = 0
  for (const { atUs, units } of uses) {
    if (limit.algorithm === 'token-bucket') level = Math.max(0, level - (atUs - lastUs) * rate) + units * grain
    else level = Math.floor(atUs / limit.periodUs) === Math.floor(lastUs / limit.periodUs) ? level + units : units
    lastUs = atUs
    found = Math.max(found, level)
  }
  return found
}

const holder = fc.nat(2)
const part = fc.constantFrom(0.1, 0.5, 1, 1)
const wanted = fc.constantFrom(0, 3, 20, 1000)
const us = fc.oneof(fc.nat(50_000), fc.nat(1_000_000), fc.constantFrom(1, 999_999, LEASE_US))
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('ask' as const),
    holder,
    wanted,
    answer: fc.constantFrom<'heard' | 'lost' | 'never sent'>('heard', 'heard', 'heard', 'lost', 'never sent'),
  }),
  fc.record({ do: fc.constant('use' as const), holder, part }),
  fc.record({ do: fc.constant('use at last' as const), holder }),
  fc.record({ do: fc.constant('take' as const), part }),
  fc.record({ do: fc.constant('wait' as const), us }),
)
const limits = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 32, max: 800 }))
    .map(([limit, burst]) => tokenBucket({ limit, period: '1s', burst })),
  fc
    .tuple(fc.integer({ min: 32, max: 800 }), fc.constantFrom(100, 700, 1000, 3000))
    .map(([limit, period]) => fixedWindow({ limit, period })),
)

describe('units that are lent', () => {
  it('are counted from before they are used until after, whatever becomes of who holds them, and no longer', () => {
    fc.assert(
      fc.property(limits, fc.array(step, { minLength: 3, maxLength: 40 }), (limit, steps) => {
        const ledger = new Ledger(limit)
        for (const each of steps) ledger.step(each)
        const grain = limit.algorithm === 'token-bucket' ? (limit.wire[2] as number) : 1
        expect(most(limit, ledger.uses)).toBeLessThanOrEqual(limit.capacity * grain)
        ledger.nowUs += LEASE_US + limit.spanUs
        expect(ledger.room()).toBe(limit.capacity)
      }),
      { numRuns: RUNS },
    )
  })
})
