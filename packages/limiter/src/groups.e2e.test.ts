import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { CLUSTER_CLIENTS } from '../../../test/redis-clients.ts'
import { type ClusterOfRedis, startRedisCluster } from '../../../test/redis-cluster.ts'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { slidingLog } from './algorithms/sliding-log/index.ts'
import { slidingWindow } from './algorithms/sliding-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createEngine, type Engine } from './engine.ts'
import type { Limit } from './limit.ts'
import type { CheckItem } from './part.ts'
import { memoryStore } from './stores/memory.ts'
import { type FakeClock, fakeClock } from './testing/fake-clock.ts'
import { redisStoreOnClock } from './testing/redis-on-clock.ts'

let cluster: ClusterOfRedis
const ends: (() => unknown)[] = []
let stores = 0

beforeAll(async () => {
  cluster = await startRedisCluster([], 0)
})

afterAll(() => cluster.stop())

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface Bench {
  readonly clock: FakeClock
  readonly engine: Engine
  readonly faults: unknown[]
}

function onCluster(clock = fakeClock()): Bench {
  const client = CLUSTER_CLIENTS[stores % CLUSTER_CLIENTS.length] as (typeof CLUSTER_CLIENTS)[number]
  const store = redisStoreOnClock(client.make([cluster.servers[0]?.url as string]), clock, { prefix: `g${++stores}` })
  const engine = createEngine({ store, timeoutMs: 10_000 })
  const faults: unknown[] = []
  engine.on('error', (fault) => faults.push(fault))
  ends.push(
    () => store.close(),
    () => engine.close(),
  )
  return { clock, engine, faults }
}

function onMemory(clock: FakeClock): Engine {
  const store = memoryStore({ clock })
  const engine = createEngine({ store })
  ends.push(
    () => store.close(),
    () => engine.close(),
  )
  return engine
}

const item = (limit: Limit, key: string, name = 'l', more: Partial<CheckItem> = {}): CheckItem => ({
  rule: 'r',
  name,
  limit,
  key,
  ...more,
})

const hour = (limit: number) => fixedWindow({ limit, period: '1h' })
const remaining = ({ limits }: { limits: readonly { remaining: number }[] }) => limits.map(({ remaining }) => remaining)

describe('a check over several slots', () => {
  it('charges all of them, or none, and says what is left now', async () => {
    const { engine, faults } = onCluster()
    const items = [item(hour(100), '', 'all'), item(hour(3), 'ann', 'user'), item(hour(5), '192.0.2.1', 'ip')]
    expect(remaining(await engine.check(items))).toEqual([99, 2, 4])
    expect(remaining(await engine.check(items, undefined))).toEqual([98, 1, 3])
    const costly = items.map((each) => ({ ...each, cost: 2 }))
    const refused = await engine.check(costly)
    expect([refused.allowed, refused.limitedBy, remaining(refused), refused.receipt]).toEqual([
      false,
      'user',
      [98, 1, 3],
      undefined,
    ])
    expect(remaining(await engine.peek(items))).toEqual([98, 1, 3])
    expect(faults).toEqual([])
  })

  it('takes nothing shared, not for a moment, from a caller whom a limit of its own refuses', async () => {
    const { engine } = onCluster()
    const shared = item(hour(10), '', 'all')
    const noisy = [shared, item(hour(1), 'noisy', 'user')]
    await engine.check(noisy)
    const asked = Array.from({ length: 200 }, (_, i) =>
      i % 20 === 0 ? engine.check([shared, item(hour(1), `quiet ${i}`, 'user')]) : engine.check(noisy),
    )
    const decisions = await Promise.all(asked)
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(9)
    expect(remaining(await engine.peek([shared]))).toEqual([0])
  })

  it('admits exactly what there is to hundreds who ask at once', async () => {
    const { engine } = onCluster()
    const asked = Array.from({ length: 300 }, (_, i) =>
      engine.check([item(hour(70), '', 'all'), item(hour(40), `team ${i % 3}`, 'team'), item(hour(1), `${i}`, 'user')]),
    )
    const admitted = (await Promise.all(asked)).filter(({ allowed }) => allowed).length
    // What is held for a moment may refuse somebody; never is too much admitted.
    expect(admitted).toBeLessThanOrEqual(70)
    expect(admitted).toBeGreaterThan(60)
    expect(remaining(await engine.peek([item(hour(70), '', 'all')]))).toEqual([70 - admitted])
  })

  it('says the same `allowed` as the memory store to checks that come one by one, over any limits', async () => {
    const limits = [
      tokenBucket({ limit: 5, period: '1s' }),
      tokenBucket({ limit: 7, period: '1m', burst: 20 }),
      fixedWindow({ limit: 5, period: '10s' }),
      fixedWindow({ limit: 4, period: '700ms', align: 'first-hit' }),
      slidingWindow({ limit: 6, period: '5s' }),
      slidingLog({ limit: 5, period: '7s' }),
      leakyBucket({ limit: 5, period: '1s', queue: 4 }),
      concurrency({ limit: 4, ttl: '5s' }),
    ]
    const step = fc.record({
      waitUs: fc.constantFrom(1, 333, 250_000, 1_000_000, 7_000_000),
      parts: fc.uniqueArray(
        fc.record({ limit: fc.nat(limits.length - 1), key: fc.constantFrom('', 'ann', 'bob', 'eve'), cost: fc.nat(3) }),
        { minLength: 1, maxLength: 5, selector: ({ limit, key }) => `${limit}${key}` },
      ),
      call: fc.constantFrom('check' as const, 'check' as const, 'check' as const, 'peek' as const),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
        const { clock, engine, faults } = onCluster()
        const memory = onMemory(clock)
        for (const { waitUs, parts, call } of steps) {
          clock.advanceUs(waitUs)
          const items = parts.map(({ limit, key, cost }) => item(limits[limit] as Limit, key, `l${limit}`, { cost }))
          const [decision, expected] = [await engine[call](items), await memory[call](items)]
          expect([decision.allowed, decision.reason, decision.source]).toEqual([
            expected.allowed,
            expected.reason,
            'store',
          ])
        }
        expect(faults).toEqual([])
      }),
      { numRuns: 25 },
    )
  })
})

describe('an operation over several slots', () => {
  const items = () => [item(hour(10), 'ann', 'user'), item(hour(6), '', 'all'), item(hour(8), '192.0.2.7', 'ip')]

  it('takes as much as all can give, and gives the rest back', async () => {
    const { engine } = onCluster()
    const { granted, decision } = await engine.takeUpTo(items(), 20)
    expect([granted, remaining(decision)]).toEqual([6, [4, 0, 2]])
    expect(remaining(await engine.peek(items()))).toEqual([4, 0, 2])
    expect(await engine.refund(items(), { receipt: decision.receipt as string })).toEqual([6, 6, 6])
    expect((await engine.takeUpTo([...items(), item(hour(0), 'none', 'none')], 3)).granted).toBe(0)
    expect(remaining(await engine.peek(items()))).toEqual([10, 6, 8])
  })

  it('gives a charge back by its receipt, once', async () => {
    const { engine } = onCluster()
    const { receipt = '' } = await engine.check(items().map((each) => ({ ...each, cost: 4 })))
    expect(await engine.refund(items(), { receipt, id: 'x' })).toEqual([4, 4, 4])
    expect(await engine.refund(items(), { receipt, id: 'x' })).toEqual([0, 0, 0])
    expect(remaining(await engine.peek(items()))).toEqual([10, 6, 8])
  })

  it('reserves all or nothing, under an id that a repetition knows', async () => {
    const { engine } = onCluster()
    const costly = items().map((each) => ({ ...each, cost: 5 }))
    const first = await engine.reserve(costly, { id: 'job' })
    expect([first.allowed, remaining(first)]).toEqual([true, [5, 1, 3]])
    expect((await engine.reserve(costly, { id: 'job' })).allowed).toBe(true)
    expect((await engine.reserve(costly, { id: 'other' })).allowed).toBe(false)
    expect(remaining(await engine.peek(items()))).toEqual([5, 1, 3])
    expect(await first.reservation?.extend(60_000)).toBe(true)
    expect(await first.reservation?.commit(2)).toEqual({ late: false, unpaid: false })
    expect(remaining(await engine.peek(items()))).toEqual([8, 4, 6])
  })

  it('does not cancel what its id held before', async () => {
    const { engine } = onCluster()
    const user = item(hour(5), 'ann', 'user', { cost: 2 })
    const { reservation } = await engine.reserve([user], { id: 'job' })
    const both = [user, item(hour(0), '', 'all', { cost: 2 })]
    expect((await engine.reserve(both, { id: 'job' })).allowed).toBe(false)
    expect(await reservation?.commit()).toEqual({ late: false, unpaid: false })
    expect(remaining(await engine.peek([user]))).toEqual([3])
  })

  it('blocks, says so, unblocks and resets every key', async () => {
    const { engine } = onCluster()
    await engine.check(items())
    await engine.block(items().slice(1, 2), { durationMs: 60_000 })
    const blocked = await engine.check(items())
    expect([blocked.allowed, blocked.reason, blocked.limitedBy]).toEqual([false, 'blocked', 'all'])
    expect([await engine.unblock(items()), await engine.unblock(items())]).toEqual([true, false])
    await engine.reset(items())
    expect(remaining(await engine.peek(items()))).toEqual([10, 6, 8])
  })

  it('takes slots that are renewed and released together, and holds none after a refusal', async () => {
    const { engine } = onCluster()
    const slots = [
      item(concurrency({ limit: 2, ttl: '1m' }), 'ann', 'user'),
      item(concurrency({ limit: 1, ttl: '1m' }), '', 'all'),
    ]
    const first = await engine.check(slots)
    expect([first.allowed, await first.renew?.()]).toEqual([true, true])
    expect((await engine.check(slots)).allowed).toBe(false)
    expect(remaining(await engine.peek(slots))).toEqual([1, 0])
    await first.release?.()
    expect(remaining(await engine.peek(slots))).toEqual([2, 1])
  })

  it('waits for the latest place of all', async () => {
    const { engine } = onCluster()
    const lines = [
      item(tokenBucket({ limit: 20, period: '1s', burst: 1 }), 'ann', 'user'),
      item(tokenBucket({ limit: 10, period: '1s', burst: 1 }), '', 'all'),
    ]
    await engine.check(lines)
    const waited = await engine.acquire(lines, { timeoutMs: 1000 })
    expect(waited.allowed).toBe(true)
    expect(waited.waitedMs).toBeGreaterThan(95)
    expect((await engine.acquire(lines, { timeoutMs: 50 })).allowed).toBe(false)
  })

  it('lets limits begin exhausted since the first use of their rule in the slot', async () => {
    const { engine, clock } = onCluster()
    const empty = ['ann', 'bob', ''].map((key) =>
      item(tokenBucket({ limit: 5, period: '1s', initial: 'empty' }), key, `l${key}`),
    )
    expect((await engine.check(empty)).allowed).toBe(false)
    clock.advance(200)
    expect((await engine.check(empty)).allowed).toBe(true)
  })
})

describe('what is judged beside a check over several slots', () => {
  it('is charged by the answer of the enforced limits, and never changes it', async () => {
    const { engine } = onCluster()
    const shadow = { rule: 'shadow', name: 's', limit: hour(1), key: 'zoe', group: 'shadow' } as const
    const wide = { rule: 'shadow', name: 't', limit: hour(9), key: '', group: 'shadow' } as const
    const items = [item(hour(5), 'ann', 'user'), item(hour(3), '', 'all'), shadow, wide]
    const first = await engine.check(items)
    expect(first.beside?.map(({ kind, allowed, limits }) => [kind, allowed, remaining({ limits })])).toEqual([
      ['shadow', true, [0, 8]],
    ])
    const second = await engine.check(items)
    expect([second.allowed, second.beside?.[0]?.allowed, second.beside?.[0]?.limitedBy]).toEqual([true, false, 's'])
    await engine.reset([{ ...shadow, group: 'enforced' }])
    await engine.check(items)
    // The enforced limits refuse: the shadow rule is asked, not charged.
    expect((await engine.check(items)).allowed).toBe(false)
    expect(remaining(await engine.peek([{ ...wide, group: 'enforced' }]))).toEqual([7])
  })

  it('judges a candidate as if it were live, also where the live limit refuses', async () => {
    const { engine } = onCluster()
    const items = [
      item(hour(0), 'ann', 'user'),
      item(hour(3), '', 'all'),
      item(hour(4), 'ann', 'user', { group: 'candidate' }),
    ]
    for (const left of [3, 2]) {
      const { allowed, beside } = await engine.check(items)
      expect([allowed, beside?.[0]?.allowed, remaining(beside?.[0] ?? { limits: [] })]).toEqual([false, true, [left]])
    }
  })

  it('blocks at the last refusal of a penalty', async () => {
    const { engine } = onCluster()
    const penalty = { refusals: 2, withinMs: 60_000, blockMs: 86_400_000 }
    const items = [item(hour(1), 'ann', 'user', { penalty }), item(hour(9), '', 'all')]
    const reasons: unknown[] = []
    for (let i = 0; i < 4; i++) reasons.push((await engine.check(items)).reason)
    expect(reasons).toEqual([undefined, 'limit', 'limit', 'blocked'])
  })
})
