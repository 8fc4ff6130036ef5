import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CheckItem,
  concurrency,
  createEngine,
  type Decision,
  type Engine,
  fixedWindow,
  tokenBucket,
} from 'headgate'
import { redisStore } from 'headgate/redis'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../../../test/load.ts'
import type { RedisServer } from '../../../../../../test/redis.ts'
import { CLIENTS, CLUSTER_CLIENTS } from '../../../../../../test/redis-clients.ts'
import { type ClusterOfRedis, startRedisCluster } from '../../../../../../test/redis-cluster.ts'
import { TAGS, tagOf } from './tags.ts'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const WINDOW = fixedWindow({ limit: 1_000_000, period: '1h' })
const item = (key: string, name = 'l') => ({ rule: 'r', name, limit: WINDOW, key })
const KEYS = Array.from({ length: 200 }, (_, i) => `caller-${i}`)

async function started(replicas = 1, ...args: string[]): Promise<ClusterOfRedis> {
  const cluster = await startRedisCluster(args, replicas)
  ends.push(() => cluster.stop())
  return cluster
}

type ClusterClient = (typeof CLUSTER_CLIENTS)[number]

function engineOn(cluster: ClusterOfRedis, { make }: ClusterClient, timeoutMs = 2000) {
  const store = redisStore(make(cluster.servers.map(({ url }) => url)))
  const engine = createEngine({ store, timeoutMs })
  const faults: { message: string; kind: string }[] = []
  engine.on('error', (fault) => faults.push(fault))
  ends.push(
    () => store.close(),
    () => engine.close(),
  )
  return { engine, faults }
}

function all(engine: Engine, name?: string): Promise<Decision[]> {
  return Promise.all(KEYS.map((key) => engine.check([item(key, name)])))
}

const used = (decision: Decision) => WINDOW.capacity - (decision.limits[0]?.remaining ?? 0)
const slotOfKey = (value: string) => TAGS[tagOf({ space: '', value })]?.slot as number
const errorsOf = (server: RedisServer, code: string) =>
  server
    .command('INFO', 'errorstats')
    .then((stats) => Number(/count=(\d+)/.exec(stats.split(`errorstat_${code}:`)[1] ?? '')?.[1] ?? 0))

describe.each(CLUSTER_CLIENTS)('a store on a cluster through $name', (client) => {
  /** It has no way to listen, and keeps it to itself that a connection is gone. */
  const isGlide = client.name === 'Valkey GLIDE'

  it('sends every key to the node that keeps it (animir/node-rate-limiter-flexible#283)', async () => {
    const cluster = await started(0)
    const { engine, faults } = engineOn(cluster, client)
    for (let round = 1; round <= 3; round++) {
      const decisions = await all(engine)
      expect(new Set(decisions.map((each) => `${each.source} ${used(each)}`))).toEqual(new Set([`store ${round}`]))
    }
    const sizes = await cluster.onMasters('DBSIZE')
    expect(sizes.map((size) => Number(size.slice(1)) > 20)).toEqual([true, true, true])
    expect(await Promise.all(cluster.servers.map((server) => errorsOf(server, 'MOVED')))).toEqual([0, 0, 0])
    expect(faults).toEqual([])
  })

  it('ends a refusal everywhere when something comes back, whichever node keeps it', async () => {
    const cluster = await started(0)
    const [one, other] = [engineOn(cluster, client).engine, engineOn(cluster, client).engine]
    const once = (key: string) => [{ ...item(key), limit: fixedWindow({ limit: 1, period: '1h' }) }]
    for (const key of KEYS.slice(0, isGlide ? 3 : 20)) {
      await one.check(once(key))
      await until('a refusal that is remembered for long', async () => {
        await other.check(once(key))
        return (await other.check(once(key))).source === 'deny-cache'
      })
      await one.reset(once(key))
      const resetMs = performance.now()
      while (!(await other.check(once(key))).allowed) await sleep(1)
      expect(performance.now() - resetMs).toBeLessThan(isGlide ? 1100 : 100)
    }
  })

  it('lends units ahead on the node that keeps the counter, and calls them back when another instance blocks it', async () => {
    const cluster = await started(0)
    const [one, other] = [engineOn(cluster, client).engine, engineOn(cluster, client).engine]
    const limit = tokenBucket({ limit: 1_000_000, period: '1d' })
    const hot: CheckItem[] = [{ rule: 'r', name: 'hot', limit, key: '', accuracy: 'lease' }]
    await until('decisions from a lease', async () => {
      const sources = await Promise.all(Array.from({ length: 200 }, () => one.check(hot).then(({ source }) => source)))
      return sources.every((source) => source === 'lease')
    })
    await other.block(hot)
    const blockedMs = performance.now()
    while ((await one.check(hot)).allowed) await sleep(1)
    expect(performance.now() - blockedMs).toBeLessThan(isGlide ? 1100 : 100)
    expect(await one.check(hot)).toMatchObject({ allowed: false, reason: 'blocked' })
    await until('given back', () => one.strandedUnits === 0)
  })

  it('has its script on every node, also after a flush and a failover (CSenshi/nestjs-redis#15, redis/ioredis#58)', async () => {
    const cluster = await started()
    const { engine, faults } = engineOn(cluster, client)
    await all(engine)
    await cluster.onMasters('SCRIPT', 'FLUSH')
    expect(new Set((await all(engine)).map(used))).toEqual(new Set([2]))
    const [master] = await cluster.masters()
    await master?.kill()
    await until(
      'served after the failover',
      async () => (await all(engine, 'probe')).every(({ source }) => source === 'store'),
      20_000,
    )
    expect(new Set((await all(engine)).map(({ source }) => source))).toEqual(new Set(['store']))
    expect(faults.filter(({ kind }) => kind === 'script')).toEqual([])
  })

  it('follows a slot that moves under load: nothing surfaces, nothing is charged twice', async () => {
    const cluster = await started(0)
    const { engine, faults } = engineOn(cluster, client)
    const slot = slotOfKey(KEYS[0] as string)
    const there = KEYS.filter((key) => slotOfKey(key) === slot)
    const [from, to] = [
      await cluster.ownerOf(slot),
      (await cluster.masters()).find(({ port }) => port !== 0) as RedisServer,
    ]
    const target =
      to.port === from.port ? ((await cluster.masters()).find(({ port }) => port !== from.port) as RedisServer) : to
    const admitted = new Map<string, number>()
    let running = true
    const load = Promise.all(
      there.map(async (key) => {
        while (running) {
          // Two keys of one check may be on two sides for a moment.
          const { source, allowed } = await engine.check([item(key), item(key, 'm')])
          if (source !== 'store' || !allowed) throw new Error(`${key} was decided by ${source}`)
          admitted.set(key, (admitted.get(key) ?? 0) + 1)
        }
      }),
    )
    await sleep(100)
    await cluster.startMove(slot, target)
    while ((await cluster.moveKeys(slot, target, 1)) > 0) await sleep(50)
    await sleep(50)
    await cluster.endMove(slot, target)
    await sleep(200)
    running = false
    await load
    for (const key of there) {
      for (const name of ['l', 'm']) expect(used(await engine.peek([item(key, name)]))).toBe(admitted.get(key))
    }
    expect(faults).toEqual([])
    expect((await cluster.ownerOf(slot)).port).toBe(target.port)
  })

  it('degrades the slots of a dead master alone until its replica takes over', async () => {
    const cluster = await started()
    const { engine } = engineOn(cluster, client, 300)
    await until(
      'every slot served',
      async () => (await all(engine, 'warm')).every(({ source }) => source === 'store'),
      10_000,
    )
    const events: string[] = []
    engine.on('degraded', () => events.push('degraded'))
    engine.on('recovered', () => events.push('recovered'))
    const dead = await cluster.ownerOf(slotOfKey(KEYS[0] as string))
    const ofDead = new Set<string>()
    for (const key of KEYS) if ((await cluster.ownerOf(slotOfKey(key))).port === dead.port) ofDead.add(key)
    await dead.kill()
    const during = await all(engine)
    for (const [i, { source, allowed }] of during.entries()) {
      expect([source, allowed]).toEqual([ofDead.has(KEYS[i] as string) ? 'local' : 'store', true])
    }
    if (isGlide) await until('degraded', async () => (await all(engine)).length > 0 && engine.degraded, 5000)
    expect(engine.degraded).toBe(true)
    await until(
      'served by the replica',
      async () => (await all(engine)).every(({ source }) => source === 'store'),
      20_000,
    )
    await until('recovered', () => !engine.degraded, 5000)
    expect(events).toEqual(['degraded', 'recovered'])
    await dead.start()
    await cluster.settled()
    expect((await all(engine)).every(({ source }) => source === 'store')).toBe(true)
  })
})

describe('a store on a cluster', () => {
  const ANY = CLUSTER_CLIENTS[0] as ClusterClient

  it('keeps keys of one call on one slot, whatever callers are called (spring-cloud-gateway#248)', async () => {
    const cluster = await started(0)
    // Whoever touches another key is refused.
    const rights = [
      'on',
      '>pw',
      '~rate_limit:{*}:*',
      '-@all',
      '+@connection',
      '+time',
      '+mget',
      '+set',
      '+pexpire',
      '+del',
    ]
    const scripts = ['+script|load', '+evalsha', '+cluster|slots', '+asking']
    await cluster.onMasters('ACL', 'SETUSER', 'limited', ...rights, ...scripts)
    const store = redisStore(ANY.make(cluster.servers.map(({ port }) => `redis://limited:pw@127.0.0.1:${port}`)))
    const engine = createEngine({ store, timeoutMs: 2000 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const faults: unknown[] = []
    engine.on('error', (fault) => faults.push(fault))
    const keys = ['{', '}', '{}', 'a{b}c{d}', '', '}{', '{{x}}', '{user}', '\0', 'é{', '\ud800{}', 'x'.repeat(300)]
    for (const key of keys) {
      const { source, limits } = await engine.check([
        item(key, 'one'),
        item(key, 'two'),
        item('', 'three'),
        item('{y}', 'four'),
      ])
      expect([key, source, limits.length]).toEqual([key, 'store', 4])
    }
    expect(faults).toEqual([])
  })

  it('is no matter of a single node: CROSSSLOT and MOVED are counted, and policies decide (SGrondin/bottleneck#180)', async () => {
    const cluster = await started(0)
    const store = redisStore((CLIENTS[0] as (typeof CLIENTS)[number]).make(cluster.servers[0]?.url as string))
    const engine = createEngine({ store, timeoutMs: 1000 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const faults: string[] = []
    engine.on('error', ({ kind, message }) => faults.push(`${kind} ${message.split(' ')[0]}`))
    const two = await engine.check(
      ['a', 'b'].map((key) => ({ ...item(key), name: `l${key}`, onStoreFailure: 'closed' as const })),
    )
    expect([two.allowed, two.reason, two.degraded]).toEqual([false, 'store', true])
    await until('told of a fault', () => faults.length > 0, 2000)
    expect(faults[0]).toBe('cluster CROSSSLOT')
  })

  it('decides the limits of a dead node by their policy and all others exactly, each settled where it was charged', async () => {
    const cluster = await started(0, '--cluster-require-full-coverage', 'no')
    const { engine } = engineOn(cluster, ANY, 500)
    await until('every slot served', async () => (await all(engine, 'warm')).every(({ source }) => source === 'store'))
    const dead = await cluster.ownerOf(slotOfKey('caller-0'))
    let alive = ''
    for (const key of KEYS) if ((await cluster.ownerOf(slotOfKey(key))).port !== dead.port) alive = key
    const slots = concurrency({ limit: 3, ttl: '1m' })
    const items = [item('caller-0'), item(alive), { rule: 'r', name: 's', limit: slots, key: alive }]
    await dead.kill()
    await until('the death noticed', async () => (await engine.peek(items.slice(0, 1))).source === 'local')
    const decision = await engine.check(items.map((each) => ({ ...each, cost: 1 })))
    expect([decision.allowed, decision.source, decision.degraded]).toEqual([true, 'local', true])
    const left = async () => (await engine.peek(items.slice(1))).limits.map(({ remaining }) => remaining)
    const inStore = await left()
    expect(await engine.refund(items, { receipt: decision.receipt as string })).toEqual([0, 1, 0])
    await decision.release?.()
    expect(await left()).toEqual([(inStore[0] as number) + 1, (inStore[1] as number) + 1])
    const { reservation } = await engine.reserve(items.slice(0, 2), { id: 'job' })
    expect(await reservation?.commit(0)).toEqual({ late: false, unpaid: false })
    expect((await left())[0]).toBe((inStore[0] as number) + 1)
    const closed = await engine.check([{ ...item('caller-0'), onStoreFailure: 'closed' }, item(alive)])
    expect([closed.allowed, closed.reason]).toEqual([false, 'store'])
    expect((await left())[0]).toBe((inStore[0] as number) + 1)
  })

  it('is found again when all of it was away, and closes without a trace', async () => {
    const cluster = await started(0)
    const { engine } = engineOn(cluster, ANY, 500)
    await until('every slot served', async () => (await all(engine)).every(({ source }) => source === 'store'), 10_000)
    for (const server of cluster.servers) await server.kill()
    expect((await all(engine)).every(({ source, allowed }) => source === 'local' && allowed)).toBe(true)
    for (const server of cluster.servers) await server.start()
    await cluster.settled()
    await until('served again', async () => (await all(engine)).every(({ source }) => source === 'store'), 20_000)
  })
})
