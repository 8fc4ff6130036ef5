import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { codecOf } from './algorithms/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import type { BucketState } from './algorithms/token-bucket/step.ts'
import { chargesOf, type Decided, deriveDecision } from './derive.ts'
import type { Limit } from './limit.ts'
import type { Charge } from './receipt.ts'
import type { Slots } from './script/judging.ts'
import type { Operation, OperationName, Part, Verdict } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/fake-clock.ts'

const RUNS = Number(process.env.LAW_RUNS ?? 200)
const START_US = Date.UTC(2026, 0, 1) * 1000

/** A charge as the law sees it: when it counts, and how much of it was never given back. */
interface Entry {
  /** The instant from which it counts: of the charge, or of its place in line. */
  readonly atUs: number
  /** Parts (of a window: units) that are charged, less what came back. */
  net: number
  readonly units: number
  readonly charge: Charge
  /** Its id while it is held. */
  id: number
  /** What was in use before it, in parts. */
  readonly before: number
  /** Units that may still be given back by the receipt. */
  left: number
}

type Step =
  | { do: 'wait'; part: number; us: number }
  | { do: 'check' | 'reserve' | 'take-up-to'; cost: number }
  | { do: 'book'; cost: number; spans: number }
  | GiveBack
  | { do: 'extend'; which: number }

type GiveBack = { do: 'refund' | 'commit'; which: number; part: number }
type Taking = Exclude<Step, GiveBack | { do: 'wait' | 'extend' }>

/** One counter on the memory store, and the list of all that was charged to it. */
class Ledger {
  readonly clock = fakeClock()
  readonly limit: Limit
  readonly entries: Entry[] = []
  private readonly store = memoryStore({ clock: this.clock })
  private ids = 0

  constructor(limit: Limit) {
    this.limit = limit
  }

  get grain(): number {
    return this.countsUnits ? 1 : (this.limit.wire[2] as number)
  }

  /** Its states count units, and not what has drained of them. */
  get countsUnits(): boolean {
    return ['fixed-window', 'sliding-window', 'sliding-log'].includes(this.limit.algorithm)
  }

  /** It may refuse what its law allows: its slices are wider than a moment. */
  get isCoarse(): boolean {
    return this.limit.algorithm === 'sliding-window'
  }

  /** Units have their turns one by one. */
  get inLine(): boolean {
    return this.limit.algorithm === 'leaky-bucket'
  }

  /** The turns of two units are never closer than the rate says; counted in parts, so that nothing is rounded. */
  private keepsItsDistance(entries: readonly Entry[]): boolean {
    const turns: { at: number; lasts: number }[] = []
    for (const { atUs, before, net } of entries) {
      const first = (atUs - START_US) * this.rate + before
      // Of a unit that was given back while it had its turn, what had passed of it counts.
      for (let of = 0; of < net; of += this.grain) turns.push({ at: first + of, lasts: Math.min(this.grain, net - of) })
    }
    turns.sort((a, b) => a.at - b.at)
    return turns.every(({ at, lasts }, i) => at + lasts <= (turns[i + 1]?.at ?? Number.POSITIVE_INFINITY))
  }

  get rate(): number {
    return this.limit.wire[1] as number
  }

  judge(cost: number, operation?: Operation, receipt?: Charge, peek = false): Verdict {
    const part: Part = {
      name: 'one',
      limit: this.limit,
      space: 'one:',
      value: '',
      cost,
      id: receipt?.instantUs,
      onStoreFailure: 'local',
    }
    // Who only asks settles nothing.
    if (!peek) this.settle()
    const check = { parts: [part], peek, operation }
    const verdict = this.store.judge(check)
    return { ...verdict, at: 0, view: verdict.view.slice(verdict.at, verdict.at + this.limit.viewSize) }
  }

  decide(cost: number, operation?: Operation): { verdict: Verdict; decision: Decided; charge: Charge | undefined } {
    const part: Part = { name: 'one', limit: this.limit, space: 'one:', value: '', cost, onStoreFailure: 'local' }
    const verdict = this.judge(cost, operation)
    const plain = operation?.name === 'reserve' ? undefined : operation
    const decision = deriveDecision({ parts: [part], peek: false, operation: plain }, verdict, 'store', false)
    return { verdict, decision, charge: chargesOf(decision)[0] }
  }

  /** What is in use now, in parts; of a window, units. */
  used(): number {
    const verdict = this.judge(0, undefined, undefined, true)
    if (!this.countsUnits || this.limit.algorithm === 'fixed-window') return verdict.view[0] as number
    return this.limit.capacity - this.limit.room(verdict.view, 0)
  }

  /** What has lapsed comes back with the next call: each hold's part of it is known only one by one. */
  private settle(): void {
    const slot = (this.store as unknown as Slots).find('one:', '')
    if (slot?.mark === undefined || slot.state === undefined) return
    const state = structuredClone(slot.state)
    for (const { id, lapseUs, units, receiptUs, chargedUs } of slot.mark.holds) {
      if (lapseUs > this.clock()) break
      const entry = this.entries.find((each) => each.id === id)
      if (units === 0 || entry === undefined) continue
      const before = this.levelOf(state)
      codecOf(state).give(state, this.clock(), units, receiptUs, chargedUs, false)
      entry.net -= before - this.levelOf(state)
      entry.left = 0
      entry.id = 0
    }
  }

  private levelOf(state: { code: number }): number {
    const codec = codecOf(state)
    if (this.countsUnits) return codec.used(state, this.clock())
    const { level, atUs, rate } = state as BucketState
    return Math.max(0, level - Math.max(0, this.clock() - atUs) * rate)
  }

  async step(step: Step): Promise<void> {
    if (step.do === 'wait') {
      this.clock.advanceUs(Math.ceil(this.limit.spanUs * step.part) + step.us)
    } else if (step.do === 'refund' || step.do === 'commit') this.giveBack(step)
    else if (step.do === 'extend') {
      const entry = this.held()[step.which % (this.held().length || 1)]
      if (entry !== undefined) this.judge(1, op('extend', entry.id, this.limit.spanUs))
    } else {
      this.charge(step as Taking)
    }
  }

  private held(): Entry[] {
    return this.entries.filter(({ id }) => id > 0)
  }

  private giveBack({ do: what, which, part }: GiveBack): void {
    // Whatever has lapsed is settled first.
    this.judge(1, op('unblock'))
    const some = what === 'commit' ? this.held() : this.entries.filter(({ id, left }) => id === 0 && left > 0)
    const entry = some[which % (some.length || 1)]
    if (entry === undefined) return
    const before = this.used()
    if (what === 'commit') {
      const actual = Math.floor(entry.units * part)
      this.judge(actual, op('commit', entry.id))
      entry.id = 0
      entry.left = 0
    } else {
      const units = Math.max(1, Math.ceil(entry.left * part))
      const again = units < entry.units ? 1 : 0
      this.judge(units, op('refund', 0, entry.charge.chargedUs, again), entry.charge)
      entry.left -= units
    }
    const back = before - this.used()
    expect(back).toBeGreaterThanOrEqual(0)
    entry.net -= back
    expect(entry.net).toBeGreaterThanOrEqual(0)
  }

  private charge(step: Taking): void {
    const cost = Math.min(step.cost, this.limit.capacity + 1)
    const nowUs = this.clock()
    const before = this.used()
    const free = (units: number) => this.allows(nowUs, units, before)
    // A window that was passed over by who waits for the next stays closed, also when that place is given back.
    const passes = this.limit.algorithm === 'fixed-window'
    const isLine = this.entries.some(({ atUs, net }) => atUs > nowUs && (net > 0 || passes))
    if (step.do === 'take-up-to') {
      const { verdict, charge } = this.decide(1, op('take-up-to', cost))
      const { result } = verdict
      if (!isLine && !this.isCoarse) {
        expect([result === 0 || free(result), result === cost || free(result + 1)]).toEqual([true, result === cost])
      }
      if (result > 0) this.add(nowUs, result, charge as Charge, before, 0)
      return
    }
    if (step.do === 'book') {
      const longestUs = Math.round(this.limit.spanUs * step.spans)
      const { verdict, charge } = this.decide(cost, op('book', longestUs))
      if (!verdict.allowed) return
      expect(verdict.result - nowUs).toBeLessThanOrEqual(longestUs)
      // The last unit of a leaky bucket's has its turn later than the first.
      if (!isLine && !this.inLine && !this.isCoarse) expect(verdict.result === nowUs).toBe(free(cost))
      this.add(this.inLine ? nowUs : verdict.result, cost, charge as Charge, before, 0)
      return
    }
    const id = step.do === 'reserve' ? ++this.ids : 0
    const held = step.do === 'reserve' ? op('reserve', id, Math.ceil(this.limit.spanUs / 2)) : undefined
    const { verdict, decision, charge } = this.decide(cost, held)
    if (!isLine && !this.isCoarse) expect([decision.allowed, cost]).toEqual([free(cost), cost])
    if (verdict.allowed && cost > 0) this.add(nowUs, cost, charge as Charge, before, id)
  }

  private add(atUs: number, units: number, charge: Charge, before: number, id: number): void {
    this.entries.push({ atUs, before, net: units * this.grain, units, charge, id, left: units })
  }

  /** Whether the law lets so many units more count from an instant on, given what counts already. */
  private allows(atUs: number, units: number, used: number): boolean {
    if (units > this.limit.capacity) return false
    if (this.inLine) return used + units * this.grain <= this.limit.capacity * this.grain
    const more = { atUs, net: units * this.grain } as Entry
    return this.holds([...this.entries, more])
  }

  /** No interval has more than the law; all that counts, less what came back. */
  holds(entries: readonly Entry[] = this.entries): boolean {
    if (this.inLine) return this.keepsItsDistance(entries)
    const sorted = entries.filter(({ net }) => net > 0).toSorted((a, b) => a.atUs - b.atUs)
    if (this.countsUnits && this.limit.algorithm !== 'fixed-window') {
      return sorted.every(({ atUs: lastUs }) => {
        const within = sorted.filter(({ atUs }) => atUs > lastUs - this.limit.periodUs && atUs <= lastUs)
        return within.reduce((sum, { net }) => sum + net, 0) <= this.limit.limit
      })
    }
    if (this.limit.algorithm === 'fixed-window') {
      const windows = new Map<number, number>()
      for (const { atUs, net } of sorted) {
        const window = Math.floor(atUs / this.limit.periodUs)
        windows.set(window, (windows.get(window) ?? 0) + net)
      }
      return [...windows.values()].every((units) => units <= this.limit.limit)
    }
    const full = this.limit.capacity * this.grain
    return sorted.every((first, i) => {
      let sum = 0
      // A place in line is told rounded up to a µs.
      const late = first.charge !== undefined && first.atUs > first.charge.chargedUs ? 1 : 0
      return sorted.slice(i).every(({ atUs, net }) => {
        sum += net
        return sum <= full + (atUs - first.atUs + late) * this.rate
      })
    })
  }
}

function op(name: OperationName, ...args: number[]): Operation {
  return { name, args }
}

const cost = fc.integer({ min: 1, max: 7 })
const which = fc.nat(9)
const part = fc.constantFrom(0, 0.3, 0.5, 1)
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('wait' as const),
        part: fc.constantFrom(0, 0.05, 0.1, 0.2, 0.3, 0.5, 1),
        us: fc.integer({ min: 0, max: 3 }),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constantFrom('check' as const, 'reserve' as const, 'take-up-to' as const), cost }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('book' as const), cost, spans: fc.constantFrom(0, 0.3, 1, 3) }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('refund' as const, 'commit' as const), which, part }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('extend' as const), which }) },
  ),
  { minLength: 1, maxLength: 50 },
)
const few = fc.integer({ min: 1, max: 6 })
const periods = fc.constantFrom(1, 7, 1000, 60_000)

async function followsTheLaw(limit: Limit, trace: readonly Step[]): Promise<void> {
  const ledger = new Ledger(limit)
  for (const step of trace) {
    await ledger.step(step)
    expect(ledger.holds()).toBe(true)
  }
}

describe('whatever is charged, held, booked and given back', () => {
  it('a token bucket admits in no interval more than its law, and refuses nothing that it allows', async () => {
    const buckets = fc
      .tuple(few, periods, few)
      .map(([limit, period, burst]) => tokenBucket({ limit, period, burst: burst + 1 }))
    await fc.assert(fc.asyncProperty(buckets, steps, followsTheLaw), { numRuns: RUNS })
  })

  it('a fixed window admits in no window more than its limit, and refuses nothing that fits', async () => {
    const windows = fc.tuple(few, periods).map(([limit, period]) => fixedWindow({ limit, period }))
    await fc.assert(fc.asyncProperty(windows, steps, followsTheLaw), { numRuns: RUNS })
  })

  it('a sliding log and a strict sliding window admit in no window of a period more than their limit', async () => {
    const limits = fc
      .tuple(few, fc.constantFrom(10, 1000, 60_000), fc.boolean())
      .map(([limit, period, isLog]) =>
        isLog ? slidingLog({ limit, period }) : slidingWindow({ limit, period, strict: true }),
      )
    await fc.assert(fc.asyncProperty(limits, steps, followsTheLaw), { numRuns: RUNS })
  })

  it('units of a leaky bucket have their turns at its rate, and none is refused that has one', async () => {
    const buckets = fc.tuple(few, periods, few).map(([limit, period, queue]) => leakyBucket({ limit, period, queue }))
    await fc.assert(fc.asyncProperty(buckets, steps, followsTheLaw), { numRuns: RUNS })
  })
})
