import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { until } from '../../../../test/load.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import { type Check, StoreFault } from '../store.ts'
import { memoryStore } from '../stores/memory.ts'
import { Policy } from './policy.ts'

const AWAY = new StoreFault('connection', 'connect ECONNREFUSED', true)

function check(limit: ReturnType<typeof tokenBucket>, value: string): Check {
  return { parts: [{ name: 'l', limit, space: 'l:', value, cost: 1, onStoreFailure: 'local' }], peek: false }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

async function heap(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    await sleep(20)
    collect()
  }
  return process.memoryUsage().heapUsed
}

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

describe('What is kept of callers while the store is away', () => {
  it('is gone soon after, of a million of them, with one timer however many (nestjs/throttler#2665)', async () => {
    const second = tokenBucket({ limit: 10, period: '1s' })
    const warm = new Policy(memoryStore(), 4)
    for (let i = 0; i < 10_000; i++) warm.decide(check(second, `w${i}`), AWAY)
    await sleep(3000)

    const local = memoryStore()
    const policy = new Policy(local, 4)
    const heapBefore = await heap()
    const timersBefore = timers()
    let most = 0
    for (let i = 0; i < 1_000_000; i++) {
      policy.decide(check(second, `caller${i}`), AWAY)
      if (i % 20_000 === 0) {
        most = Math.max(most, local.size)
        expect(timers()).toBeLessThanOrEqual(timersBefore + 1)
        // The process also does other things.
        await sleep(0)
      }
    }
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(1_000_000)
    // The share's budget is unused again after 0.4 s a unit.
    await until('an empty store', () => local.size === 0, 20_000)
    expect(await heap()).toBeLessThan(heapBefore * 1.1)
    expect(timers()).toBeLessThanOrEqual(timersBefore)
  })

  it('stays under its cap in a flood of others, and does not forget who had used up his budget', () => {
    const local = memoryStore({ maxKeys: 20_000 })
    const policy = new Policy(local, 1)
    const hour = tokenBucket({ limit: 10, period: '1h' })
    const exhausted = Array.from({ length: 50 }, (_, i) => `exhausted${i}`)
    for (const value of exhausted) for (let i = 0; i < 10; i++) policy.decide(check(hour, value), AWAY)
    for (let i = 0; i < 200_000; i++) {
      policy.decide(check(hour, `flood${i}`), AWAY)
      if (i % 1000 === 0) expect(local.size).toBeLessThanOrEqual(20_000)
    }
    for (const value of exhausted) expect(policy.decide(check(hour, value), AWAY).allowed).toBe(false)
  })
})
