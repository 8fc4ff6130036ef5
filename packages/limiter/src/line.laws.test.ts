import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { deriveDecision, resultOf } from './derive.ts'
import type { Limit } from './limit.ts'
import type { Check, Part } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/fake-clock.ts'

const RUNS = Number(process.env.LAW_RUNS ?? 200)
const GRACE_US = 2_000_000
const LONG_US = 1e12

interface Caller {
  /** How long after the one before it comes (µs). */
  readonly afterUs: number
  readonly cost: number
  /** Stands in line, only checks, or dies while it stands in line. */
  readonly does: 'acquire' | 'check' | 'die'
}

interface Told extends Caller {
  readonly id: number
  readonly cameUs: number
  chargedUs?: number
}

/** Callers before the same limits, on a clock of their own: each asks again exactly when it was told to. */
function play(limits: readonly Limit[], callers: readonly Caller[]): Told[] {
  const clock = fakeClock(Date.UTC(2026, 0, 1) + 250)
  const store = memoryStore({ clock })
  const told: Told[] = []
  const startUs = clock()
  let cameUs = startUs
  const events = callers.map((caller, i) => {
    cameUs += caller.afterUs
    const one: Told = { ...caller, id: i + 1, cameUs }
    told.push(one)
    return { atUs: cameUs, one }
  })
  for (let steps = 0; events.length > 0 && steps < 10_000; steps++) {
    events.sort((a, b) => a.atUs - b.atUs || a.one.id - b.one.id)
    const { atUs, one } = events.shift() as (typeof events)[number]
    clock.setUs(atUs)
    const check = checkOf(limits, one)
    const decision = deriveDecision(check, store.judge(check), 'store', false)
    if (decision.allowed) one.chargedUs = Math.round(decision.at * 1000)
    else if (one.does === 'acquire' && (resultOf(decision) ?? 0) > 0) {
      // Slots come back when they lapse here; who waits for them asks now and then.
      const least = limits.some((limit) => limit.holdsSlots) ? 100_000 : 1
      events.push({ atUs: atUs + Math.max(least, Math.round(decision.retryAfterMs * 1000)), one })
    }
  }
  return told
}

function checkOf(limits: readonly Limit[], { cost, does, id }: Told): Check {
  const parts = limits.map(
    (limit, i): Part => ({
      name: `l${i}`,
      limit,
      space: `l${i}:`,
      value: '',
      cost,
      id: limit.holdsSlots ? id : 0,
      onStoreFailure: 'local',
    }),
  )
  if (does === 'check') return { parts, peek: false }
  const books = limits.every((limit) => limit.books) ? 1 : 0
  return { parts, peek: false, operation: { name: 'book', args: [LONG_US, id, GRACE_US, books] } }
}

const callers = (...does: Caller['does'][]) =>
  fc.array(
    fc.record({
      afterUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2000 }), fc.integer({ min: 0, max: 3_000_000 })),
      cost: fc.integer({ min: 1, max: 4 }),
      does: fc.constantFrom(...does),
    }),
    { minLength: 1, maxLength: 40 },
  )

/** What nobody may be told before: the instants of a line in which everybody is served in turn. */
function inTurn(limit: Limit, told: readonly Told[]): Map<number, number> {
  const runs: { atUs: number; cost: number }[] = []
  const starts = new Map<number, number>()
  let lastUs = 0
  for (const { id, cost, cameUs } of told) {
    let atUs = Math.max(cameUs, lastUs)
    const used = () => runs.reduce((sum, run) => sum + (run.atUs > atUs - limit.periodUs ? run.cost : 0), 0)
    while (used() + cost > limit.limit) {
      atUs = Math.min(...runs.filter((run) => run.atUs > atUs - limit.periodUs).map((run) => run.atUs + limit.periodUs))
    }
    runs.push({ atUs, cost })
    starts.set(id, atUs)
    lastUs = atUs
  }
  return starts
}

const LINES: [string, Limit[], sliceUs?: number][] = [
  ['a log', [slidingLog({ limit: 4, period: '1s' })]],
  ['a strict window', [slidingWindow({ limit: 4, period: '1s', slices: 4, strict: true })], 250_000],
  ['a weighted window', [slidingWindow({ limit: 4, period: '1s', slices: 5 })], 200_000],
  ['a calendar', [fixedWindow({ limit: 4, period: 'minute', align: 'calendar', timeZone: 'Europe/Berlin' })]],
  ['slots', [concurrency({ limit: 4, ttl: '500ms' })]],
  [
    'a bucket beside a log',
    [tokenBucket({ limit: 5, period: '1s', burst: 5 }), slidingLog({ limit: 4, period: '1s' })],
  ],
  ['a bucket beside slots', [tokenBucket({ limit: 5, period: '1s' }), concurrency({ limit: 4, ttl: '300ms' })]],
]

describe('A line of callers with tickets', () => {
  it.each(LINES)('before %s is first come first served, whatever they cost', (_name, limits, sliceUs = 0) => {
    fc.assert(
      fc.property(callers('acquire', 'acquire', 'acquire', 'check'), (plan) => {
        const told = play(limits, plan)
        const stood = told.filter(({ does }) => does === 'acquire')
        // 1. everybody who waits has its turn
        expect(stood.filter(({ chargedUs }) => chargedUs === undefined)).toEqual([])
        // 2. in the order in which they came; where there is room for both, who is told a later slice sleeps on
        const turns = stood.map(({ chargedUs = 0 }) => chargedUs)
        const latest = turns.map((_, i) => Math.max(...turns.slice(0, i + 1)))
        expect(turns.filter((turn, i) => turn < (latest[i] as number) - sliceUs)).toEqual([])
        // 3. and nobody who does not wait comes between
        for (const { chargedUs: passedUs, does } of told) {
          if (does !== 'check' || passedUs === undefined) continue
          const waited = stood.filter(({ cameUs, chargedUs = 0 }) => cameUs < passedUs && chargedUs > passedUs)
          expect(waited).toEqual([])
        }
      }),
      { numRuns: RUNS },
    )
  })

  it.each(LINES)('before %s moves on when somebody in it dies', (_name, limits) => {
    fc.assert(
      fc.property(callers('acquire', 'acquire', 'check', 'die'), (plan) => {
        const told = play(limits, plan)
        expect(told.filter(({ does, chargedUs }) => does === 'acquire' && chargedUs === undefined)).toEqual([])
      }),
      { numRuns: RUNS },
    )
  })

  it('before a log is served at the very instants of a queue', () => {
    const log = slidingLog({ limit: 4, period: '1s' })
    fc.assert(
      fc.property(callers('acquire'), (plan) => {
        const told = play([log], plan)
        const turns = inTurn(log, told)
        for (const { id, chargedUs = 0 } of told) {
          const lateUs = chargedUs - (turns.get(id) as number)
          // Who asks in the same microsecond as the one before it may ask twice.
          expect(lateUs).toBeGreaterThanOrEqual(0)
          expect(lateUs).toBeLessThanOrEqual(plan.length)
        }
      }),
      { numRuns: RUNS },
    )
  })

  it('is left by the dead: nobody waits longer than their place and its grace', () => {
    const log = slidingLog({ limit: 1, period: '1s' })
    const dead = Array.from({ length: 3 }, (): Caller => ({ afterUs: 1000, cost: 1, does: 'die' }))
    const told = play(
      [log],
      [{ afterUs: 0, cost: 1, does: 'check' }, ...dead, { afterUs: 1000, cost: 1, does: 'acquire' }],
    )
    const last = told.at(-1) as Told
    expect((last.chargedUs as number) - last.cameUs).toBeLessThanOrEqual(2 * log.periodUs + GRACE_US)
  })
})
