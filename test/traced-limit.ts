import { createEngine, type Decision, type Limit, type LimitStatus, memoryStore } from 'headgate'
import { type FakeClock, fakeClock } from 'headgate/testing'

/** One counter on the memory store, on a clock that the test moves. Each call is one check. */
export interface TracedLimit {
  readonly clock: FakeClock
  /** Where the clock stands, in µs since the trace began. */
  readonly atUs: number
  check(cost?: number, limit?: Limit): Promise<Decision>
  peek(cost?: number, limit?: Limit): Promise<Decision>
}

/** @param limit what is checked unless a call says otherwise */
export function traceLimit(limit: Limit, startMs?: number): TracedLimit {
  const clock = fakeClock(startMs)
  const startUs = clock()
  const engine = createEngine({ store: memoryStore({ clock }) })
  const item = (cost = 1, other = limit) => [{ name: 'traced', limit: other, key: '', cost }]
  return {
    clock,
    get atUs() {
      return clock() - startUs
    },
    check: (cost, other) => engine.check(item(cost, other)),
    peek: (cost, other) => engine.peek(item(cost, other)),
  }
}

/** The only limit's part in a decision. */
export function statusOf(decision: Decision): LimitStatus {
  return decision.limits[0] as LimitStatus
}

/** A wait of a decision, which is in ms with µs as their fraction, in µs. */
export function inUs(ms: number): number {
  return ms === Number.POSITIVE_INFINITY ? ms : Math.round(ms * 1000)
}

/** The instant of a decision by the store's clock, in µs. */
export function instantUs(decision: Decision): number {
  return Math.round(decision.at * 1000)
}
