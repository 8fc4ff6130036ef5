import { Redis } from 'ioredis-5'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createEngine, type Engine } from './engine.ts'
import { HeadgateError } from './errors.ts'
import type { Limit } from './limit.ts'
import type { CheckItem } from './part.ts'
import { redisStore } from './stores/redis/index.ts'

let server: RedisServer
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

beforeEach(() => redis.flushall())

/** Two processes' engines, each with a store of its own on one Redis. */
async function withTwo(body: (one: Engine, other: Engine) => Promise<void>): Promise<void> {
  const stores = [1, 2].map(() => redisStore(new Redis(server.url, { lazyConnect: true })))
  const engines = stores.map((store) => createEngine({ store, timeoutMs: 10_000 }))
  try {
    await body(...(engines as [Engine, Engine]))
  } finally {
    for (const engine of engines) await engine.close()
    for (const store of stores) await store.close()
  }
}

const own: Record<string, Limit> = {
  'token-bucket': tokenBucket({ limit: 2, period: '1h', scope: 'instance' }),
  'leaky-bucket': leakyBucket({ limit: 2, period: '1h', queue: 1, scope: 'instance' }),
  'fixed-window': fixedWindow({ limit: 2, period: '1h', align: 'first-hit', scope: 'instance' }),
  calendar: fixedWindow({ limit: 2, period: 'year', align: 'calendar', scope: 'instance' }),
  concurrency: concurrency({ limit: 2, scope: 'instance' }),
  'sliding-window': slidingWindow({ limit: 2, period: '1h', scope: 'instance' }),
  'sliding-log': slidingLog({ limit: 2, period: '1h', scope: 'instance' }),
}
// Windows: nothing of them drains while a test looks.
const window = (limit: number, scope?: 'instance') =>
  fixedWindow({ limit, period: '1h', align: 'first-hit', ...(scope && { scope }) })
const own2 = window(2, 'instance')
const shared = window(3)

const item = (limit: Limit, name: string, cost = 1, key = 'ann'): CheckItem => ({ rule: 'r', name, limit, key, cost })
const both = (limit: Limit, cost = 1) => [item(limit, 'own', cost), item(shared, 'shared', cost)]
const left = async (engine: Engine, items: CheckItem[]) =>
  (await engine.peek(items)).limits.map(({ remaining }) => remaining)

describe.each(Object.entries(own))('a %s of each instance', (_name, limit) => {
  it('gives each its own budget, and nothing of it is in Redis', async () => {
    await withTwo(async (one, other) => {
      for (const engine of [one, other, one, other]) {
        expect((await engine.check([item(limit, 'own')])).allowed).toBe(true)
      }
      for (const engine of [one, other]) expect((await engine.check([item(limit, 'own')])).allowed).toBe(false)
      expect(await redis.keys('*own*')).toEqual([])
    })
  })

  it('is charged together with a shared one, or neither is', async () => {
    await withTwo(async (one, other) => {
      expect((await one.check(both(limit, 2))).allowed).toBe(true)
      // 1 is left of the shared budget, 2 of the other's own.
      const refused = await other.check(both(limit, 2))
      expect([refused.allowed, refused.limitedBy, refused.limits.map((status) => status.remaining)]).toEqual([
        false,
        'shared',
        [2, 1],
      ])
      expect(await left(other, both(limit))).toEqual([2, 1])
      // Nothing is left of the first's own: the shared budget is not touched.
      expect(await one.check(both(limit))).toMatchObject({ allowed: false, limitedBy: 'own' })
      expect(await left(other, both(limit))).toEqual([2, 1])
    })
  })

  it('is not changed by a peek, and forgotten by a reset of its own process alone', async () => {
    await withTwo(async (one, other) => {
      for (const engine of [one, other]) await engine.check([item(limit, 'own', 2)])
      await one.reset([item(limit, 'own')])
      expect([await left(one, [item(limit, 'own')]), await left(one, [item(limit, 'own')])]).toEqual([[2], [2]])
      expect(await left(other, [item(limit, 'own')])).toEqual([0])
    })
  })

  it('keeps its whole budget when nobody shares a store any more', () => {
    expect(limit.share(10)).toBe(limit)
  })
})

describe('budgets of an instance beside shared ones', () => {
  it('give as much as all have, and keep no more', async () => {
    await withTwo(async (one, other) => {
      await other.check([item(shared, 'shared', 2)])
      const { granted, decision } = await one.takeUpTo(both(window(5, 'instance')), 4)
      expect([granted, decision.limits.map((status) => status.remaining)]).toEqual([1, [4, 0]])
      const five = both(window(5, 'instance'))
      expect(
        await one.refund(
          five.map((each) => ({ ...each, cost: 9 })),
          { receipt: decision.receipt ?? '' },
        ),
      ).toEqual([1, 1])
      expect(await left(one, five)).toEqual([5, 1])
    })
  })

  it('give no more than their own, and take that of the shared', async () => {
    await withTwo(async (one, other) => {
      expect((await one.takeUpTo(both(own2), 9)).granted).toBe(2)
      expect(await left(other, both(own2))).toEqual([2, 1])
      expect((await one.takeUpTo(both(own2), 9)).granted).toBe(0)
    })
  })

  it('are refunded where they were charged', async () => {
    await withTwo(async (one, other) => {
      const { receipt } = await one.check(both(own2, 2))
      expect(await one.refund(both(own2, 2), { receipt: receipt ?? '' })).toEqual([2, 2])
      expect([await left(one, both(own2)), await left(other, both(own2))]).toEqual([
        [2, 3],
        [2, 3],
      ])
    })
  })

  it('are held and committed together', async () => {
    await withTwo(async (one) => {
      const { reservation } = await one.reserve(both(own2, 2), { id: 'a' })
      expect(await left(one, both(own2))).toEqual([0, 1])
      expect(await reservation?.commit(1)).toEqual({ late: false, unpaid: false })
      expect(await left(one, both(own2))).toEqual([1, 2])
    })
  })

  it('give slots of both back, once', async () => {
    const slots = [item(concurrency({ limit: 1, scope: 'instance' }), 'own'), item(concurrency({ limit: 2 }), 'shared')]
    await withTwo(async (one, other) => {
      const first = await one.check(slots)
      const second = await other.check(slots)
      expect([first.allowed, second.allowed, (await one.check(slots)).allowed]).toEqual([true, true, false])
      expect(await first.renew?.()).toBe(true)
      await first.release?.()
      await first.release?.()
      expect([await left(one, slots), await left(other, slots)]).toEqual([
        [1, 1],
        [0, 1],
      ])
      expect(await first.renew?.()).toBe(false)
    })
  })

  it('keep no slot for whom a shared limit refuses', async () => {
    const slots = [item(concurrency({ limit: 2, scope: 'instance' }), 'own'), item(shared, 'shared', 2)]
    await withTwo(async (one) => {
      const first = await one.check(slots)
      expect((await one.check(slots)).allowed).toBe(false)
      expect(await left(one, slots)).toEqual([1, 1])
      await first.release?.()
      expect(await left(one, slots)).toEqual([2, 1])
    })
  })
})

describe('budgets of an instance while the store is away', () => {
  async function withoutStore(body: (engine: Engine) => Promise<void>): Promise<void> {
    const away = await startRedis()
    const store = redisStore(new Redis(away.url, { lazyConnect: true }))
    const engine = createEngine({ store, timeoutMs: 500, instances: 3 })
    try {
      expect((await engine.check([item(shared, 'probe')])).source).toBe('store')
      await away.stop()
      await body(engine)
    } finally {
      await engine.close()
      await store.close()
    }
  }

  it.each(['local', 'open'] as const)(
    'are judged as ever beside a shared one that is %s, and give slots back',
    async (policy) => {
      const slot = item(concurrency({ limit: 1, scope: 'instance' }), 'own')
      const slots = [slot, { ...item(shared, 'shared'), onStoreFailure: policy }]
      await withoutStore(async (engine) => {
        const first = await engine.check(slots)
        expect([first.allowed, first.degraded]).toEqual([true, true])
        expect((await engine.check([slot])).allowed).toBe(false)
        expect(await first.renew?.()).toBe(true)
        await first.release?.()
        expect((await engine.check([slot])).allowed).toBe(true)
      })
    },
  )

  it.each(['local', 'open'] as const)(
    'are held and committed where they are, beside a shared one that is %s',
    async (policy) => {
      await withoutStore(async (engine) => {
        const items = [item(own2, 'own', 1), { ...item(shared, 'shared', 1), onStoreFailure: policy }]
        const { reservation } = await engine.reserve(items)
        expect(await reservation?.commit()).toEqual({ late: false, unpaid: false })
        expect(await left(engine, [item(own2, 'own')])).toEqual([1])
      })
    },
  )

  it('are given back where a caller is told by an error, or refused', async () => {
    await withoutStore(async (engine) => {
      const asked = (onStoreFailure: 'throw' | 'closed') => [
        item(own2, 'own', 2),
        { ...item(shared, 'shared', 2), onStoreFailure },
      ]
      await expect(engine.check(asked('throw'))).rejects.toSatisfy(HeadgateError.is)
      expect((await engine.check(asked('closed'))).reason).toBe('store')
      expect(await left(engine, [item(own2, 'own')])).toEqual([2])
    })
  })
})
