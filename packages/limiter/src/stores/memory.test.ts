import { afterEach, describe, expect, it, vi } from 'vitest'
import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import { createEngine } from '../engine.ts'
import { InvalidArgumentError } from '../errors.ts'
import type { Limit } from '../limit.ts'
import { fakeClock } from '../testing/index.ts'
import { type MemoryStoreOptions, memoryStore } from './memory.ts'

const hourly = tokenBucket({ limit: 5, period: '1h' })

function setUp(options: MemoryStoreOptions = {}) {
  const clock = fakeClock()
  const store = memoryStore({ clock, ...options })
  const engine = createEngine({ store })
  const check = (key: string, limit: Limit = hourly, cost = 1) =>
    engine.check([{ name: limit.algorithm, limit, key, cost }])
  return { clock, store, engine, check }
}

afterEach(() => {
  vi.useRealTimers()
})

describe('a bad option of memoryStore', () => {
  const cases: [unknown, string][] = [
    [null, 'memoryStore'],
    [5, 'memoryStore'],
    [{ maxkeys: 5 }, 'memoryStore.maxkeys'],
    [{ maxKeys: 0 }, 'maxKeys'],
    [{ maxKeys: -1 }, 'maxKeys'],
    [{ maxKeys: 1.5 }, 'maxKeys'],
    [{ maxKeys: '1000' }, 'maxKeys'],
    [{ maxKeys: Number.POSITIVE_INFINITY }, 'maxKeys'],
    [{ clock: 5 }, 'clock'],
    [{ clock: null }, 'clock'],
  ]
  it.each(cases)('%j is refused by its name', (options, argument) => {
    const create = () => memoryStore(options as MemoryStoreOptions)
    expect(create).toThrow(InvalidArgumentError)
    expect(create).toThrow(new RegExp(`^${argument}: `))
  })
})

describe('the memory store', () => {
  it('judges by time, not by timers: none has to fire for a window to end (animir/node-rate-limiter-flexible#238)', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'setImmediate'] })
    const { clock, check } = setUp()
    for (const limit of [hourly, fixedWindow({ limit: 5, period: '1h', align: 'first-hit' })]) {
      await check('ann', limit, 5)
      const refused = await check('ann', limit)
      expect([refused.allowed, refused.retryAfterMs > 0]).toEqual([false, true])
      clock.advance(3_600_000)
      const next = await check('ann', limit, 5)
      expect([next.allowed, next.limits[0]?.resetAfterMs]).toEqual([true, 3_600_000])
    }
  })

  it('forgets what reads as unused, and then has no timer (nestjs/throttler#2665)', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { clock, store, check } = setUp()
    for (let i = 0; i < 50_000; i++) await check(`caller${i}`)
    expect([store.size, vi.getTimerCount()]).toEqual([50_000, 1])
    clock.advance(719_999)
    vi.advanceTimersByTime(500)
    expect(store.size).toBe(50_000)
    clock.advance(1)
    vi.advanceTimersByTime(500)
    expect([store.size, vi.getTimerCount()]).toEqual([0, 0])
    await check('ann')
    expect([store.size, vi.getTimerCount()]).toEqual([1, 1])
    await store.close()
    expect([store.size, vi.getTimerCount()]).toEqual([0, 0])
  })

  it('keeps what is in use while it forgets the rest', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { clock, store, check } = setUp()
    for (let i = 0; i < 1000; i++) await check(`caller${i}`, hourly, 1 + (i % 5))
    clock.advance(720_000 * 2)
    vi.advanceTimersByTime(500)
    expect(store.size).toBe(600)
    for (let i = 0; i < 1000; i++) {
      const { limits } = await check(`caller${i}`, hourly, 0)
      expect(limits[0]?.remaining).toBe(Math.min(5, 5 - 1 - (i % 5) + 2))
    }
  })

  it('makes no counter for a peek, a question or a refusal', async () => {
    const { store, engine, check } = setUp()
    await engine.peek([{ name: 'limit', limit: hourly, key: 'ann' }])
    await check('ann', hourly, 0)
    await check('ann', hourly, 6)
    expect(store.size).toBe(0)
  })

  it('never grows beyond maxKeys, and a flood of other keys does not make it forget an exhausted one', async () => {
    const { store, check } = setUp({ maxKeys: 1000 })
    await check('victim', hourly, 5)
    for (let i = 0; i < 20_000; i++) {
      await check(`flood${i}`)
      if (store.size > 1000) throw new Error(`${store.size} keys`)
    }
    expect(store.size).toBe(1000)
    expect((await check('victim')).allowed).toBe(false)
  })

  it('works with room for a single key', async () => {
    const { store, check } = setUp({ maxKeys: 1 })
    expect((await check('ann', hourly, 5)).allowed).toBe(true)
    expect((await check('ann')).allowed).toBe(false)
    expect((await check('bob')).allowed).toBe(true)
    // One more, for all who are new while nobody can be forgotten.
    expect(store.size).toBe(2)
  })

  it('forgets no exhausted counter for a flood of others, however short its budget and long theirs', async () => {
    const engine = createEngine({ store: memoryStore({ maxKeys: 1000, clock: fakeClock() }) })
    const login = [{ name: 'login', limit: tokenBucket({ limit: 5, period: '1m' }), key: 'attacker' }]
    const daily = (key: string) => [{ name: 'daily', limit: tokenBucket({ limit: 1000, period: '1d' }), key }]
    for (let i = 0; i < 5; i++) await engine.check(login)
    let admitted = 0
    for (let i = 0; i < 20_000; i++) {
      expect((await engine.check(daily(`flood${i}`))).allowed).toBe(true)
      if (i % 20 === 0 && (await engine.check(login)).allowed) admitted += 1
    }
    expect(admitted).toBe(0)
  })

  it('keeps one shared counter of a limit for as long as it is needed, whatever gives way in between', async () => {
    const store = memoryStore({ maxKeys: 50, clock: fakeClock() })
    const engine = createEngine({ store })
    const item = (key: string, cost = 1) => [{ name: 'login', limit: hourly, key, cost }]
    let admitted = 0
    // One of fifty is not exhausted: some samples find it, most do not.
    for (let i = 0; i < 49; i++) await engine.check(item(`old${i}`, hourly.capacity))
    await engine.check(item('rest', 1))
    for (let i = 0; i < 2000; i++) if ((await engine.check(item(`new${i}`, hourly.capacity))).allowed) admitted += 1
    // Who takes the place of one that gives way is exhausted too; the shared counter admits one.
    expect(admitted).toBeLessThanOrEqual(2)
    expect(store.size).toBeLessThanOrEqual(51)
  })

  it('lets who is new share one counter of a limit when only exhausted ones are left, and counts them', async () => {
    const store = memoryStore({ maxKeys: 100, clock: fakeClock() })
    const engine = createEngine({ store })
    const item = (key: string, cost = 1) => [{ name: 'login', limit: hourly, key, cost }]
    for (let i = 0; i < 100; i++) await engine.check(item(`old${i}`, hourly.capacity))
    const decisions = await Promise.all(Array.from({ length: 50 }, (_, i) => engine.check(item(`new${i}`))))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(hourly.capacity)
    expect([store.size, store.overflowed >= 50]).toEqual([101, true])
    for (let i = 0; i < 100; i++) expect((await engine.check(item(`old${i}`))).allowed).toBe(false)
  })

  it('keeps decisions apart: what one says is not changed by the next', async () => {
    const { check } = setUp()
    const first = await check('ann')
    const copy = structuredClone(first)
    await check('ann', hourly, 3)
    await check('bob')
    expect(first).toEqual(copy)
  })

  it('keeps no process alive', async () => {
    const { store, check } = setUp({ clock: () => Date.now() * 1000 })
    await check('ann')
    const timer = Reflect.get(store, 'sweeper') as NodeJS.Timeout
    expect(timer.hasRef()).toBe(false)
    await store.close()
  })
})
