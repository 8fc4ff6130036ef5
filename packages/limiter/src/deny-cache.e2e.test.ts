import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { Redis } from 'ioredis-5'
import { Redis as Redis6 } from 'ioredis-6'
import { createClient as createClient5 } from 'redis-5'
import { createClient as createClient6 } from 'redis-6'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { DenyCache } from './deny-cache.ts'
import { createEngine, type Engine } from './engine.ts'
import type { Limit } from './limit.ts'
import type { CheckItem } from './part.ts'
import type { Check, Operation, Part, RemoteStore, Verdict } from './store.ts'
import { type RedisClient, redisStore } from './stores/redis/index.ts'
import { fakeClock } from './testing/fake-clock.ts'
import { redisStoreOnClock } from './testing/redis-on-clock.ts'

/** Each limit as it was, and as another instance knows it. */
const LIMITS: [Limit, Limit][] = [
  [tokenBucket({ limit: 4, period: '1s', burst: 4 }), tokenBucket({ limit: 400, period: '1s', burst: 4 })],
  [tokenBucket({ limit: 3, period: '10s' }), slidingLog({ limit: 3, period: '1s' })],
  [leakyBucket({ limit: 4, period: '1s', queue: 2 }), leakyBucket({ limit: 40, period: '1s', queue: 2 })],
  [fixedWindow({ limit: 3, period: '2s' }), fixedWindow({ limit: 30, period: '2s' })],
  [fixedWindow({ limit: 3, period: '2s', align: 'first-hit' }), tokenBucket({ limit: 3, period: '10ms' })],
  [slidingLog({ limit: 4, period: '2s' }), slidingLog({ limit: 4, period: '100ms' })],
  [slidingWindow({ limit: 4, period: '2s', slices: 5 }), slidingWindow({ limit: 4, period: '1s', slices: 3 })],
  [slidingWindow({ limit: 4, period: '2s', strict: true }), fixedWindow({ limit: 9, period: '1s' })],
]
const INSTANCES = 3
const CHANNEL = 'rate_limit:~:changes'
const DEADLINE_MS = 10_000

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

type Step =
  | { do: 'wait'; ms: number }
  | { do: 'check'; by: number; on: readonly number[]; cost: number; late: boolean; other: boolean }
  | { do: 'operate'; by: number; on: number; operation: Operation; cost: number; other: boolean }
  | { do: 'deaf'; by: number }

/** Instances that share a store, each with its cache; what they hear comes through the server. */
class World {
  readonly clock = fakeClock()
  readonly stores: RemoteStore[] = []
  readonly caches: DenyCache[] = []
  readonly late: [DenyCache, Check, Verdict][] = []
  limits: [Limit, Limit][] = []
  hits = 0
  private readonly heard = new Map<string, number>()
  private readonly stop: (() => void)[] = []

  constructor() {
    for (let i = 0; i < INSTANCES; i++) {
      const cache = new DenyCache({ maxAgeMs: 3_600_000 }, () => this.clock() / 1000)
      const store = redisStoreOnClock(new Redis(server.url, { lazyConnect: true }), this.clock)
      const { onLive, onChange } = cache.listener
      const hear = (key: string) => {
        if (key.startsWith('~sync:')) this.heard.set(key, (this.heard.get(key) ?? 0) + 1)
        else onChange(key)
      }
      this.stop.push((store.watchChanges as NonNullable<RemoteStore['watchChanges']>)({ onLive, onChange: hear }))
      this.caches.push(cache)
      this.stores.push(store)
    }
  }

  /** Everything that was told is heard; while a subscription is being made, again and again. */
  async heardAll(): Promise<void> {
    const key = `~sync:${Math.random()}`
    while ((this.heard.get(key) ?? 0) < INSTANCES) {
      this.heard.set(key, 0)
      await redis.publish(CHANNEL, `rate_limit:${key}`)
      for (let i = 0; i < 50 && (this.heard.get(key) ?? 0) < INSTANCES; i++) await redis.ping()
    }
  }

  async play(step: Step): Promise<void> {
    if (step.do === 'wait') this.clock.advance(step.ms)
    else if (step.do === 'deaf') this.caches[step.by]?.forgetAll(step.by % 2 === 0)
    else if (step.do === 'check') await this.check(step)
    else {
      const parts = [this.partOf(step.on, step.cost, step.other)]
      await this.store(step.by).run({ parts, peek: false, operation: step.operation }, this.deadlineMs())
      await this.heardAll()
    }
  }

  async close(): Promise<void> {
    for (const stop of this.stop) stop()
    await Promise.all(this.stores.map((store) => store.close()))
  }

  private async check({ by, on, cost, late, other }: Step & { do: 'check' }): Promise<void> {
    const parts = on.map((which) => this.partOf(which, cost, other))
    const check: Check = { parts, peek: false }
    const cache = this.caches[by] as DenyCache
    const denied = cache.find(check)
    if (denied !== undefined) {
      const asked = await this.store(by).run({ parts, peek: true }, this.deadlineMs())
      expect(
        asked.allowed,
        `${JSON.stringify(denied)} of ${JSON.stringify(parts.map(({ limit }) => limit.wire))}`,
      ).toBe(false)
      expect(denied.retryAfterMs).toBeLessThanOrEqual(longestMs(parts, asked) + 0.001)
      this.hits += 1
      return
    }
    const writtenMs = this.clock() / 1000
    const verdict = { ...(await this.store(by).run(check, this.deadlineMs())), writtenMs }
    if (late) this.late.push([cache, check, verdict])
    else cache.keep(check, verdict)
    // What was on its way for longer comes in another order.
    if (this.late.length > 3) for (const [of, asked, answer] of this.late.splice(0).reverse()) of.keep(asked, answer)
    // Charges under other numbers are told of.
    if (other) await this.heardAll()
  }

  private partOf(which: number, cost: number, other: boolean): Part {
    const limit = (this.limits[which] as [Limit, Limit])[other ? 1 : 0]
    return { name: `l${which}`, limit, space: `deny:l${which}:`, value: 'ann', cost, onStoreFailure: 'local' }
  }

  private store(by: number): RemoteStore {
    return this.stores[by] as RemoteStore
  }

  private deadlineMs(): number {
    return performance.now() + DEADLINE_MS
  }
}

function longestMs(parts: readonly Part[], { view, at: from, nowUs, blockedUs }: Verdict): number {
  let longest = blockedUs > 0 ? (blockedUs - nowUs) / 1000 : 0
  let at = from
  for (const { limit, cost } of parts) {
    const status = { limit: 0, capacity: 0, remaining: 0, retryAfterMs: 0, nextMs: 0, resetAfterMs: 0 }
    limit.tell(view, at, nowUs, cost, status)
    if (status.retryAfterMs > longest) longest = status.retryAfterMs
    at += limit.viewSize
  }
  return longest
}

/** Of the two limits of a run. */
const which = fc.nat(1)
const by = fc.nat(INSTANCES - 1)
const id = fc.integer({ min: 1, max: 3 })
const operation = fc.oneof(
  fc.constantFrom<Operation>(
    { name: 'refund', args: [0, 0, 0] },
    { name: 'reset', args: [] },
    { name: 'unblock', args: [] },
    { name: 'block', args: [1_000_000] },
    { name: 'take-up-to', args: [2] },
  ),
  fc.tuple(id, fc.integer({ min: 1000, max: 3_000_000 })).map((args): Operation => ({ name: 'reserve', args })),
  id.map((own): Operation => ({ name: 'commit', args: [own] })),
  fc
    .tuple(fc.constantFrom(0, 500_000), id, fc.constant(1e6), fc.nat(1))
    .map((args): Operation => ({ name: 'book', args })),
)
const check = fc.record({
  do: fc.constant('check' as const),
  by,
  on: fc.uniqueArray(which, { minLength: 1, maxLength: 2 }),
  cost: fc.integer({ min: 1, max: 4 }),
  late: fc.nat(3).map((one) => one === 0),
  other: fc.nat(5).map((one) => one === 0),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: check },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 1200 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('operate' as const),
      by,
      on: which,
      operation,
      cost: fc.nat(3),
      other: fc.nat(5).map((one) => one === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deaf' as const), by }) },
)

const limits = fc.uniqueArray(fc.constantFrom(...LIMITS), { minLength: 2, maxLength: 2 })

describe('Refusals that are repeated without the store', () => {
  it('are refusals that the store would give, whatever instances do to the same counters', async () => {
    const world = new World()
    await world.heardAll()
    try {
      await fc.assert(
        fc.asyncProperty(limits, fc.array(step, { minLength: 20, maxLength: 80 }), async (two, steps) => {
          world.limits = two
          await redis.flushall()
          world.late.length = 0
          for (const cache of world.caches) cache.forgetAll(true)
          world.clock.advance(1)
          for (const each of steps) await world.play(each)
        }),
        { numRuns: Number(process.env.LAW_RUNS ?? 200) },
      )
      expect(world.hits).toBeGreaterThan(50)
    } finally {
      await world.close()
    }
  }, 120_000)
})

const CLIENTS: [string, () => RedisClient][] = [
  ['ioredis 5', () => new Redis(server.url, { lazyConnect: true })],
  ['ioredis 6', () => new Redis6(server.url, { lazyConnect: true })],
  ['node-redis 5', () => createClient5({ url: server.url })],
  ['node-redis 6', () => createClient6({ url: server.url })],
]

describe.each(CLIENTS)('Two engines through %s', (_name, client) => {
  const item: CheckItem[] = [{ name: 'one', limit: tokenBucket({ limit: 1, period: '1h' }), key: 'ann' }]
  const stores: RemoteStore[] = []
  const engines: Engine[] = []

  beforeEach(async () => {
    await redis.flushall()
    for (let i = 0; i < 2; i++) stores.push(redisStore(client()))
    for (const store of stores) engines.push(createEngine({ store, timeoutMs: 5000 }))
    await vi.waitFor(async () => expect(await redis.pubsub('NUMSUB', CHANNEL)).toEqual([CHANNEL, 2]))
  })

  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.close()
    for (const store of stores.splice(0)) await store.close()
    expect(await redis.pubsub('NUMSUB', CHANNEL)).toEqual([CHANNEL, 0])
  })

  /** Both refuse by what they remember. */
  async function exhausted(): Promise<[Engine, Engine]> {
    for (const engine of engines) {
      await engine.check(item)
      await engine.check(item)
      expect((await engine.check(item)).source).toBe('deny-cache')
    }
    return engines as [Engine, Engine]
  }

  it('ask Redis nothing while a refusal holds', async () => {
    const [one] = await exhausted()
    const before = await calls()
    for (let i = 0; i < 1000; i++) expect((await one.check(item)).allowed).toBe(false)
    expect(await calls()).toBe(before)
  })

  it.each([
    ['a refund', (engine: Engine) => engine.refund(item)],
    ['a reset', (engine: Engine) => engine.reset(item)],
  ])('end their refusals within 100 ms after %s by either', async (_what, ease) => {
    const [one, other] = await exhausted()
    await ease(one)
    const easedMs = performance.now()
    // At once where it was done.
    expect((await one.check(item)).allowed).toBe(true)
    await ease(one)
    while (!(await other.check(item)).allowed) await sleep(1)
    expect(performance.now() - easedMs).toBeLessThan(100)
  })

  it('end a block within 100 ms after it was lifted', async () => {
    const [one, other] = engines as [Engine, Engine]
    await one.block(item)
    await other.check(item)
    expect(await other.check(item)).toMatchObject({ reason: 'blocked', source: 'deny-cache' })
    await one.unblock(item)
    const liftedMs = performance.now()
    while (!(await other.check(item)).allowed) await sleep(1)
    expect(performance.now() - liftedMs).toBeLessThan(100)
  })

  it('forget what they knew when they may have missed something, and listen again', async () => {
    const [one, other] = await exhausted()
    await redis.call('CLIENT', 'KILL', 'TYPE', 'PUBSUB')
    await vi.waitFor(async () => expect((await other.check(item)).source).toBe('store'))
    await vi.waitFor(async () => expect(await redis.pubsub('NUMSUB', CHANNEL)).toEqual([CHANNEL, 2]), { timeout: 5000 })
    await sleep(20)
    await other.check(item)
    expect((await other.check(item)).source).toBe('deny-cache')
    await one.reset(item)
    await vi.waitFor(async () => expect((await other.check(item)).allowed).toBe(true))
  })
})

describe('Announcements', () => {
  const item: CheckItem[] = [
    { name: 'one', limit: tokenBucket({ limit: 1, period: '1h' }), key: 'ann', onStoreFailure: 'open' },
  ]

  it('come through a client that is given for them, which stays its user’s', async () => {
    const subscriber = new Redis(server.url)
    const store = redisStore(new Redis(server.url, { lazyConnect: true }), { subscriber })
    const engine = createEngine({ store, timeoutMs: 5000 })
    await vi.waitFor(async () => expect(await redis.pubsub('NUMSUB', CHANNEL)).toEqual([CHANNEL, 1]))
    await engine.close()
    await store.close()
    expect([await redis.pubsub('NUMSUB', CHANNEL), subscriber.status]).toEqual([[CHANNEL, 0], 'ready'])
    subscriber.disconnect()
  })

  it('that a login may not hear are told of once; refusals are then repeated for a second', async () => {
    await redis.flushall()
    await redis.call('ACL', 'SETUSER', 'deaf', 'on', '>deaf', '~*', '+@all', 'resetchannels')
    const store = redisStore(new Redis({ port: server.port, username: 'deaf', password: 'deaf', lazyConnect: true }))
    const engine = createEngine({ store, timeoutMs: 5000 })
    const errors: string[] = []
    engine.on('error', ({ kind, message }) => void errors.push(`${kind}: ${message}`))
    await vi.waitFor(() =>
      expect(errors.join()).toMatch(/^subscription: no subscription to rate_limit:~:changes \(.*for 1 s/),
    )
    await engine.check(item)
    await engine.check(item)
    expect((await engine.check(item)).source).toBe('deny-cache')
    await redis.flushall()
    await vi.waitFor(async () => expect((await engine.check(item)).allowed).toBe(true), { timeout: 1500 })
    expect(errors).toHaveLength(1)
    await engine.close()
    await store.close()
  })

  it('or not: without the store the policies decide, not what was known', async () => {
    await redis.flushall()
    const store = redisStore(new Redis(server.url, { lazyConnect: true }))
    const engine = createEngine({ store, timeoutMs: 50 })
    await engine.check(item)
    await vi.waitFor(async () => expect((await engine.check(item)).source).toBe('deny-cache'))
    server.pause()
    const other = [{ ...(item[0] as CheckItem), key: 'bob' }]
    await vi.waitFor(async () => expect((await engine.check(other)).degraded && engine.degraded).toBe(true), {
      timeout: 5000,
    })
    expect(await engine.check(item)).toMatchObject({ allowed: true, source: 'policy' })
    server.resume()
    await engine.close()
    await store.close()
  })
})

async function calls(): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1])
}
