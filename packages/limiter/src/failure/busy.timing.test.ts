import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { afterEach, describe, expect, it } from 'vitest'
import { record, until } from '../../../../test/load.ts'
import { startRedis } from '../../../../test/redis.ts'
import { CLIENTS } from '../../../../test/redis-clients.ts'

const LIMIT = tokenBucket({ limit: 4, period: '1h' })
const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

describe('A busy process', () => {
  it.each(CLIENTS)('takes the answers that lie in its socket, and blames nobody, on $name', async ({ make }) => {
    const redis = await startRedis()
    ends.push(() => redis.stop())
    const store = redisStore(make(redis.url))
    const engine = createEngine({ store, timeoutMs: 50, denyCache: false })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const ask = () => engine.check([{ rule: 'r', name: 'l', limit: LIMIT, key: 'k' }])
    await until('the store', async () => (await ask()).source === 'store')
    // Trouble of the start, told a second later at most, is not what is looked at here.
    await until('a healthy store', () => !engine.degraded)
    await sleep(1100)
    const events = record(engine)
    for (let i = 0; i < 8; i++) {
      const waiting = Array.from({ length: 10 }, ask)
      // Long enough for the command to leave, too short for the answer to be read.
      await turns(3)
      block(200)
      const decided = await Promise.all(waiting)
      expect(decided.map(({ source }) => source)).toEqual(Array.from({ length: 10 }, () => 'store'))
    }
    expect(engine.degraded).toBe(false)
    expect(events).toEqual([])
  })

  async function turns(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
  }

  function block(ms: number): void {
    const endMs = performance.now() + ms
    while (performance.now() < endMs);
  }
})
