import { deepStrictEqual, equal } from 'node:assert/strict'
import type { Clock } from '../clock.ts'
import type { Decision } from '../decision.ts'
import { createEngine, type Engine } from '../engine.ts'
import type { Limit } from '../limit.ts'
import type { CheckItem } from '../part.ts'
import type { Store } from '../store.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'

/** Makes a store that holds nothing yet and takes its time from `clock`. The case closes it. */
export type OpenStore = (clock: Clock) => Store | Promise<Store>

/** One promise that every store keeps: `run` rejects with an AssertionError where this one does not. */
export interface ConformanceCase {
  readonly name: string
  run(): Promise<void>
}

/** A store under test, its clock, and what each call of a case needs. */
export interface Bench {
  readonly clock: FakeClock
  readonly engine: Engine
  /** Its counters stand on several servers: what a check of several takes is given back where one refuses. */
  readonly spread: boolean
  /** One check of one limit. */
  take(limit: Limit, cost?: number, key?: string): Promise<Decision>
  peek(limit: Limit, cost?: number, key?: string): Promise<Decision>
}

/** Patient, so that a slow machine fails no case: what a deadline does is no matter of the store's. */
const TIMEOUT_MS = 10_000

export function conformanceCase(open: OpenStore, name: string, body: (bench: Bench) => Promise<void>): ConformanceCase {
  const run = async () => {
    const clock = fakeClock()
    const store = await open(clock)
    const engine = createEngine({ store, timeoutMs: TIMEOUT_MS })
    const faults: unknown[] = []
    engine.on('error', (fault) => faults.push(fault))
    try {
      await body({
        clock,
        engine,
        spread: store.kind === 'remote' && store.groupOf !== undefined,
        take: (limit, cost, key) => engine.check([item(limit, cost, key)]),
        peek: (limit, cost, key) => engine.peek([item(limit, cost, key)]),
      })
      deepStrictEqual(faults, [], 'the store reports no fault')
    } finally {
      await engine.close()
      await store.close()
    }
  }
  return { name, run }
}

export function item(limit: Limit, cost = 1, key = 'ann', name = 'limit'): CheckItem {
  return { rule: 'conformance', name, limit, key, cost }
}

/** What a decision must say of its first limit; what is left out may be anything. */
export function expectDecision(decision: Decision, allowed: boolean, remaining: number, retryAfterMs?: number): void {
  const said = { allowed: decision.allowed, remaining: decision.limits[0]?.remaining }
  deepStrictEqual(said, { allowed, remaining })
  equal(decision.source, 'store')
  equal(decision.degraded, false)
  if (retryAfterMs !== undefined) equal(decision.retryAfterMs, retryAfterMs)
}
