import { deepStrictEqual } from 'node:assert/strict'
import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { slidingLog } from '../algorithms/sliding-log/index.ts'
import { slidingWindow } from '../algorithms/sliding-window/index.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import type { Decision } from '../decision.ts'
import { createEngine } from '../engine.ts'
import type { CheckItem } from '../part.ts'
import { memoryStore } from '../stores/memory.ts'
import { type Bench, item } from './conformance-case.ts'

const LIMITS = [
  tokenBucket({ limit: 3, period: '1s' }),
  tokenBucket({ limit: 7, period: '1m', burst: 20 }),
  tokenBucket({ limit: 2_000_000, period: '1s', burst: 9 }),
  fixedWindow({ limit: 5, period: '10s' }),
  fixedWindow({ limit: 4, period: '700ms', align: 'first-hit' }),
  slidingWindow({ limit: 6, period: '5s' }),
  slidingWindow({ limit: 6, period: '8s', slices: 3, strict: true }),
  slidingLog({ limit: 5, period: '7s' }),
]
const KEYS = ['ann', 'bob', 'eve']
const WAITS_US = [0, 1, 333, 250_000, 1_000_000, 7_000_000]
const STEPS = 400

/** One trace on both stores, and after each step the same answer, every number of it. */
export async function sameAsMemory({ clock, engine, spread }: Bench): Promise<void> {
  const memory = memoryStore({ clock })
  const other = createEngine({ store: memory })
  const draw = dice(20_261_130)
  for (let step = 0; step < STEPS; step++) {
    clock.advanceUs(WAITS_US[draw(WAITS_US.length)] as number)
    const items: CheckItem[] = []
    for (let i = draw(3); i >= 0; i--) {
      const index = draw(LIMITS.length)
      // The names are fewer than the limits, so that a counter meets other numbers and algorithms. Where charges are
      // given back it does not: the first charge under new numbers rewrites the state.
      const name = spread ? `limit${i}.${index}` : `limit${i}`
      items.push(item(LIMITS[index] as (typeof LIMITS)[number], draw(4), KEYS[draw(KEYS.length)], name))
    }
    const call = draw(10) === 0 ? 'peek' : 'check'
    const [decision, expected] = [await engine[call](items), await other[call](items)]
    const told = spread && !expected.allowed ? refusing : (each: Decision) => each
    deepStrictEqual(told(decision), told(expected), `step ${step}`)
    // A bucket takes back all but what drains within a microsecond.
    if (spread && !expected.allowed) clock.advanceUs(1)
    if (draw(50) === 0) await Promise.all([engine.reset(items), other.reset(items)])
  }
  await other.close()
  await memory.close()
}

/** What a refusal says, but for limits that did not refuse: these were charged and gave it back. */
function refusing(decision: Decision): object {
  return { ...decision, limits: decision.limits.filter(({ retryAfterMs }) => retryAfterMs > 0) }
}

/** The same draws every time: a linear congruential generator. @returns draws from 0 to `sides` − 1 */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * sides)
  }
}
