import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, type Engine, fixedWindow } from 'headgate'
import { redisStore } from 'headgate/redis'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../../../test/load.ts'
import type { RedisServer } from '../../../../../../test/redis.ts'
import { CLUSTER_CLIENTS } from '../../../../../../test/redis-clients.ts'
import { type ClusterOfRedis, startRedisCluster } from '../../../../../../test/redis-cluster.ts'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const WINDOW = fixedWindow({ limit: 1_000_000, period: '1h' })
const item = (key: string) => [{ rule: 'r', name: 'l', limit: WINDOW, key }]
const CALLERS = Array.from({ length: 60 }, (_, i) => `caller-${i}`)
const TIMEOUT_MS = 50

describe.each(CLUSTER_CLIENTS)('On a cluster through $name, what was decided', ({ make }) => {
  async function started(replicas: number, timeoutMs: number): Promise<{ cluster: ClusterOfRedis; engine: Engine }> {
    const cluster = await startRedisCluster([], replicas)
    const store = redisStore(make(cluster.servers.map(({ url }) => url)))
    const engine = createEngine({ store, timeoutMs })
    ends.push(
      () => cluster.stop(),
      () => store.close(),
      () => engine.close(),
    )
    await back(engine)
    return { cluster, engine }
  }

  const back = (engine: Engine) =>
    until(
      'every slot served',
      async () =>
        (await Promise.all(CALLERS.map((key) => engine.check(item(`back-${key}`))))).every(
          ({ source }) => source === 'store',
        ),
      20_000,
    )

  async function used(engine: Engine, key: string): Promise<number> {
    const { source, limits } = await engine.peek(item(key))
    expect(source).toBe('store')
    return WINDOW.capacity - (limits[0]?.remaining as number)
  }

  it('without it was decided in time, and is charged nowhere: no queue of a client holds it (redis/ioredis#285, redis/node-redis#932)', async () => {
    const { cluster, engine } = await started(0, TIMEOUT_MS)
    for (const server of cluster.servers) server.pause()
    const during: string[] = []
    const tookMs: number[] = []
    const beginMs = performance.now()
    for (let i = 0; performance.now() < beginMs + 400; i++) {
      const askedMs = performance.now()
      const { source, allowed } = await engine.check(item(`paused-${i}`))
      tookMs.push(performance.now() - askedMs)
      expect([source, allowed]).toEqual(['local', true])
      during.push(`paused-${i}`)
      await sleep(1)
    }
    for (const server of cluster.servers) server.resume()
    // A busy machine wakes a process late; a queue would hold it for seconds.
    expect(Math.max(...tookMs)).toBeLessThan(TIMEOUT_MS + 150)
    await back(engine)
    await sleep(100)
    for (const key of during) expect([key, await used(engine, key)]).toEqual([key, 0])
  })

  it('is charged once at most where every connection was cut behind it (redis/ioredis#61)', async () => {
    const { cluster, engine } = await started(0, 1000)
    const asked: string[] = []
    let running = true
    const load = Promise.all(
      CALLERS.map(async () => {
        while (running) {
          // A key of its own for each, so that what was charged for it can be looked up.
          const key = `cut-${asked.length}`
          asked.push(key)
          await engine.check(item(key))
          // What is decided without Redis is decided at once: without a pause nothing else would run.
          await sleep(2)
        }
      }),
    )
    for (let i = 0; i < 10; i++) {
      await sleep(50)
      await cluster.onMasters('CLIENT', 'KILL', 'TYPE', 'normal')
    }
    running = false
    await load
    await back(engine)
    for (const key of asked) expect(await used(engine, key)).toBeLessThanOrEqual(1)
  })

  it('is known to whoever takes over in a planned failover, which nobody notices (redis/ioredis#144)', async () => {
    const { cluster, engine } = await started(1, 5000)
    const faults: unknown[] = []
    engine.on('error', (fault) => faults.push(fault))
    engine.on('degraded', (fault) => faults.push(fault))
    const admitted = new Map<string, number>(CALLERS.map((key) => [key, 0]))
    let running = true
    const load = Promise.all(
      CALLERS.map(async (key) => {
        while (running) {
          const { source, allowed } = await engine.check(item(key))
          if (source !== 'store' || !allowed) throw new Error(`${key} was decided by ${source}`)
          admitted.set(key, (admitted.get(key) as number) + 1)
        }
      }),
    )
    const masters = await cluster.masters()
    const replica = cluster.servers.find(({ port }) => masters.every((master) => master.port !== port)) as RedisServer
    await until('a replica that is up to date', async () =>
      (await replica.command('INFO', 'replication')).includes('master_link_status:up'),
    )
    expect(await replica.command('CLUSTER', 'FAILOVER')).toBe('+OK')
    await until('the failover', async () => (await cluster.masters()).some(({ port }) => port === replica.port))
    await sleep(300)
    running = false
    await load
    for (const key of CALLERS) expect(await used(engine, key)).toBe(admitted.get(key))
    expect(faults).toEqual([])
  })
})
