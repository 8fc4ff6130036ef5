import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis-5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import type { LibraryFailurePolicy } from './decision.ts'
import { createEngine, type Engine } from './engine.ts'
import { StoreUnavailableError } from './errors.ts'
import type { Limit } from './limit.ts'
import type { CheckItem } from './part.ts'
import type { RemoteStore } from './store.ts'
import { redisStore } from './stores/redis/index.ts'

let server: RedisServer
let store: RemoteStore
let engine: Engine

beforeAll(async () => {
  server = await startRedis()
})

beforeEach(async () => {
  await server.kill()
  await server.start()
  store = redisStore(new Redis(server.url, { lazyConnect: true }))
  engine = createEngine({ store, timeoutMs: 200 })
  await engine.peek(item())
})

afterEach(async () => {
  await engine.close()
  await store.close()
})

afterAll(() => server.stop())

const hourly = tokenBucket({ limit: 10, period: '1h' })
const item = (
  cost = 1,
  onStoreFailure: LibraryFailurePolicy = 'local',
  name = 'a',
  limit: Limit = hourly,
): CheckItem[] => [{ name, limit, key: 'ann', cost, onStoreFailure }]
const left = async (items: CheckItem[]) => (await engine.peek(items)).limits[0]?.remaining

async function back(): Promise<void> {
  await server.start()
  while (engine.degraded) await sleep(20)
}

describe('without its store', () => {
  it('rejects what changes keys, and changes nothing', async () => {
    const { receipt = '' } = await engine.check(item(4))
    const { reservation } = await engine.reserve(item(4))
    await server.kill()
    const calls = [
      () => engine.reset(item()),
      () => engine.block(item()),
      () => engine.unblock(item()),
      () => engine.refund(item(4), { receipt }),
      () => engine.refund(item(4)),
      () => reservation?.commit(1),
      () => reservation?.cancel(),
      () => reservation?.extend(1000),
      () => engine.reservation(item(4), 'x').commit(1),
    ]
    for (const call of calls) await expect(call()).rejects.toThrow(StoreUnavailableError)
  })

  it('takes, waits and reserves by the policy of each limit', async () => {
    await server.kill()
    expect((await engine.takeUpTo(item(1, 'open'), 7)).granted).toBe(7)
    expect((await engine.takeUpTo(item(1, 'local'), 7)).granted).toBe(7)
    expect((await engine.takeUpTo(item(1, 'local'), 7)).granted).toBe(3)
    expect((await engine.takeUpTo(item(1, 'closed'), 7)).granted).toBe(0)
    await expect(engine.takeUpTo(item(1, 'throw'), 7)).rejects.toThrow(StoreUnavailableError)
    expect(await engine.acquire(item(1, 'open'), { timeoutMs: 50 })).toMatchObject({ allowed: true, source: 'policy' })
    expect(await engine.acquire(item(1, 'closed'), { timeoutMs: 50 })).toMatchObject({
      allowed: false,
      reason: 'store',
    })
    await expect(engine.acquire(item(1, 'throw'))).rejects.toThrow(StoreUnavailableError)
    const open = await engine.reserve(item(4, 'open'))
    expect(await open.reservation?.commit(1)).toEqual({ late: false, unpaid: false })
    expect(await open.reservation?.extend(1000)).toBe(true)
    expect((await engine.reserve(item(4, 'closed'))).reservation).toBeUndefined()
    await expect(engine.reserve(item(4, 'throw'))).rejects.toThrow(StoreUnavailableError)
  })

  it('waits in the line before its own share, and gives a place there back', async () => {
    const fast = (cost = 1) => item(cost, 'local', 'fast', tokenBucket({ limit: 10, period: '1s', burst: 1 }))
    await server.kill()
    expect((await engine.acquire(fast())).source).toBe('local')
    const leaving = new AbortController()
    const second = engine.acquire(fast(), { signal: leaving.signal })
    leaving.abort(new Error('gone'))
    await expect(second).rejects.toThrow('gone')
    const third = await engine.acquire(fast())
    expect([third.allowed, third.source, (third.waitedMs as number) < 150]).toEqual([true, 'local', true])
  })

  it('settles what it charged here, and only here, also when the store is back', async () => {
    await engine.check(item(5))
    await server.kill()
    const { receipt = '', source } = await engine.check(item(4))
    const { reservation } = await engine.reserve(item(4))
    expect([source, await left(item(0))]).toEqual(['local', 2])
    expect(await engine.refund(item(4), { receipt })).toEqual([4])
    expect(await reservation?.commit(1)).toEqual({ late: false, unpaid: false })
    expect(await left(item(0))).toEqual(9)
    const again = await engine.check(item(4))
    const held = await engine.reserve(item(4))
    await back()
    await engine.check(item(5))
    expect([again.source, held.source]).toEqual(['local', 'local'])
    expect(await engine.refund(item(4), { receipt: again.receipt as string })).toEqual([4])
    await held.reservation?.cancel()
    expect(await left(item(0))).toBe(5)
  })

  it('charges and settles limits of different policies each where it stands', async () => {
    await server.kill()
    const both = (cost: number) => [...item(cost, 'open', 'open'), ...item(cost, 'local', 'local')]
    const { receipt = '', reservation } = await engine.reserve(both(4))
    expect(receipt).toBe('')
    expect(await reservation?.commit(1)).toEqual({ late: false, unpaid: false })
    const charged = await engine.check(both(4))
    expect(await engine.refund(both(4), { receipt: charged.receipt as string })).toEqual([0, 4])
    expect((await engine.peek(item(0, 'local', 'local'))).limits[0]?.remaining).toBe(9)
  })

  it('holds slots of its share, and releases them here', async () => {
    const slots = item(1, 'local', 'slots', concurrency({ limit: 1 }))
    await server.kill()
    const first = await engine.check(slots)
    expect([first.source, (await engine.check(slots)).allowed]).toEqual(['local', false])
    expect(await first.renew?.()).toBe(true)
    await first.release?.()
    expect((await engine.check(slots)).allowed).toBe(true)
  })
})
