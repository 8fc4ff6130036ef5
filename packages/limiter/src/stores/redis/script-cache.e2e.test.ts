import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, type Decision, type Engine, fixedWindow } from 'headgate'
import { redisStore } from 'headgate/redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { record, until } from '../../../../../test/load.ts'
import { type RedisServer, startRedis } from '../../../../../test/redis.ts'
import { ALL_CLIENTS } from '../../../../../test/redis-clients.ts'

const WIDE = fixedWindow({ limit: 1_000_000, period: '1h' })
const item = (key: string, limit = WIDE) => ({ rule: 'r', name: 'l', limit, key })

describe.each(ALL_CLIENTS)('A script that Redis forgot, by $name', ({ make }) => {
  let redis: RedisServer
  let engine: Engine
  let events: string[]
  let close: () => Promise<void>

  beforeEach(async () => {
    redis = await startRedis()
    const store = redisStore(make(redis.url))
    engine = createEngine({ store, timeoutMs: 2000 })
    events = record(engine)
    close = () => store.close()
    expect((await engine.check([item('warm')])).source).toBe('store')
  })

  afterEach(async () => {
    await engine.close()
    await close()
    await redis.stop()
  })

  const loads = async () =>
    Number(/cmdstat_script\|load:calls=(\d+)/.exec(await redis.command('INFO', 'commandstats'))?.[1] ?? 0)
  const used = async (key: string) => WIDE.limit - ((await engine.peek([item(key)])).limits[0]?.remaining as number)

  it('is loaded again without anybody noticing, with 50 calls on their way (rate-limit-redis#144)', async () => {
    const before = await loads()
    await redis.command('SCRIPT', 'FLUSH')
    const twenty = fixedWindow({ limit: 20, period: '1h' })
    const decisions: Promise<Decision>[] = []
    for (let i = 0; i < 50; i++) {
      decisions.push(engine.check([item('k', twenty)]))
      // Several batches on their way, each of which finds no script.
      if (i % 10 === 9) await new Promise((resolve) => setImmediate(resolve))
    }
    const decided = await Promise.all(decisions)
    expect(decided.every(({ source }) => source === 'store')).toBe(true)
    expect(decided.filter(({ allowed }) => allowed)).toHaveLength(20)
    expect((await loads()) - before).toBeLessThanOrEqual(3)
    expect(events).toEqual([])
  })

  it('is flushed again and again under load, and every admission is charged once', async () => {
    let flushing = true
    const flushes = (async () => {
      while (flushing) {
        await redis.command('SCRIPT', 'FLUSH')
        await sleep(10)
      }
    })()
    let admitted = 0
    for (let i = 0; i < 100; i++) {
      const decided = await Promise.all(Array.from({ length: 10 }, () => engine.check([item('k')])))
      expect(decided.every(({ source }) => source === 'store')).toBe(true)
      admitted += decided.filter(({ allowed }) => allowed).length
      await sleep(2)
    }
    flushing = false
    await flushes
    expect(admitted).toBe(1000)
    expect(await used('k')).toBe(1000)
    expect(events).toEqual([])
  })

  it('is there after a restart between two calls (upstash/ratelimit-js#122)', async () => {
    await redis.kill()
    await redis.start()
    await until('a connection', async () => (await redis.command('CLIENT', 'LIST')).split('\n').length > 2)
    await sleep(100)
    const decided = await Promise.all(Array.from({ length: 50 }, () => engine.check([item('k')])))
    expect(decided.every(({ source }) => source === 'store')).toBe(true)
    expect(await used('k')).toBe(50)
    expect(events).toEqual([])
  })
})
