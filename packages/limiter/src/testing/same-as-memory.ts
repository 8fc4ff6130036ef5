import { deepStrictEqual } from 'node:assert/strict'
import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { slidingLog } from '../algorithms/sliding-log/index.ts'
import { slidingWindow } from '../algorithms/sliding-window/index.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
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
export async function sameAsMemory({ clock, engine }: Bench): Promise<void> {
  const memory = memoryStore({ clock })
  const other = createEngine({ store: memory })
  const draw = dice(20_261_130)
  for (let step = 0; step < STEPS; step++) {
    clock.advanceUs(WAITS_US[draw(WAITS_US.length)] as number)
    const items: CheckItem[] = []
    for (let i = draw(3); i >= 0; i--) {
      const limit = LIMITS[draw(LIMITS.length)] as (typeof LIMITS)[number]
      // The names are fewer than the limits, so that a counter meets other numbers and algorithms.
      items.push(item(limit, draw(4), KEYS[draw(KEYS.length)], `limit${i}`))
    }
    const call = draw(10) === 0 ? 'peek' : 'check'
    deepStrictEqual(await engine[call](items), await other[call](items), `step ${step}`)
    if (draw(50) === 0) await Promise.all([engine.reset(items), other.reset(items)])
  }
  await other.close()
  await memory.close()
}

/** The same draws every time: a linear congruential generator. @returns draws from 0 to `sides` − 1 */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * sides)
  }
}
