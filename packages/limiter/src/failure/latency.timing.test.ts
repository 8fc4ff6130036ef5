import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createEngine } from 'headgate'
import { redisStore } from 'headgate/redis'
import { describe, expect, it } from 'vitest'
import { AMPLE, quantile, startLoad, until } from '../../../../test/load.ts'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import { CLIENTS, type TestClient } from '../../../../test/redis-clients.ts'
import { startProxy, type TcpProxy } from '../../../../test/tcp-proxy.ts'

const TIMEOUT_MS = 50
const PER_SECOND = 500
const OUTAGE_MS = 3000

interface Stage {
  readonly redis: RedisServer
  readonly proxy: TcpProxy
}

const outages: readonly { readonly name: string; begin(stage: Stage): unknown; end(stage: Stage): unknown }[] = [
  { name: 'Redis is stopped', begin: ({ redis }) => redis.pause(), end: ({ redis }) => redis.resume() },
  { name: 'packets are dropped', begin: ({ proxy }) => proxy.drop(), end: ({ proxy }) => proxy.restore() },
  { name: 'the network takes 2 s', begin: ({ proxy }) => proxy.delay(2000), end: ({ proxy }) => proxy.delay(0) },
  { name: 'Redis is killed', begin: ({ redis }) => redis.kill(), end: ({ redis }) => redis.start() },
]

async function staged<T>(make: TestClient['make'], run: (stage: Stage & { engine: Engine }) => Promise<T>): Promise<T> {
  const redis = await startRedis()
  const proxy = await startProxy(redis.port)
  const store = redisStore(make(`redis://127.0.0.1:${proxy.port}`))
  const engine = createEngine({ store, timeoutMs: TIMEOUT_MS })
  try {
    await until('the store', async () => (await ask(engine)).source === 'store' && !engine.degraded)
    return await run({ redis, proxy, engine })
  } finally {
    await engine.close()
    await store.close()
    await proxy.close()
    await redis.stop()
  }
}

type Engine = ReturnType<typeof createEngine>
const ask = (engine: Engine, key = 'k') => engine.check([{ rule: 'r', name: 'l', limit: AMPLE, key }])

describe.each(outages)('While $name', ({ name, begin, end }) => {
  it.each(CLIENTS)('$name decides within its deadline, and soon at once (redis/ioredis#285)', async (client) => {
    await staged(client.make, async (stage) => {
      let openedMs = Number.POSITIVE_INFINITY
      stage.engine.on('degraded', () => {
        openedMs = Math.min(openedMs, performance.now())
      })
      const load = startLoad(stage.engine, PER_SECOND)
      await sleep(500)
      const loop = monitorEventLoopDelay({ resolution: 1 })
      loop.enable()
      await begin(stage)
      const begunMs = performance.now()
      await sleep(OUTAGE_MS)
      const during = load.since(begunMs)
      loop.disable()
      await end(stage)
      await load.stop()

      const loopMs = loop.percentile(99.9) / 1e6
      const tookMs = quantile(during.map((each) => each.tookMs).filter(Number.isFinite), 0.999)
      const atOnceMs = quantile(
        load
          .since(openedMs)
          .filter(({ begunMs: ms }) => ms < begunMs + OUTAGE_MS)
          .map((each) => each.tookMs),
        0.99,
      )
      console.log(
        `${client.name}, ${name}: p99.9 ${tookMs.toFixed(1)} ms of ${during.length}, ` +
          `p99 once open ${atOnceMs.toFixed(3)} ms, event loop p99.9 ${loopMs.toFixed(1)} ms`,
      )
      expect(during.length).toBeGreaterThan((PER_SECOND * OUTAGE_MS) / 1000 / 2)
      expect(tookMs).toBeLessThanOrEqual(TIMEOUT_MS + 10 + loopMs)
      expect(atOnceMs).toBeLessThan(1)
      expect(openedMs - begunMs).toBeLessThan(3 * TIMEOUT_MS)
    })
  })
})

describe('Memory', () => {
  it.each(CLIENTS)('stays flat while Redis is away, on $name', async ({ make }) => {
    await staged(make, async ({ redis, proxy, engine }) => {
      redis.pause()
      await sleep(200)
      const cycle = async () => {
        // Connections come and go, probes fail, decisions are made: enough of each for a leak to show.
        for (let i = 0; i < 10; i++) {
          for (let n = 0; n < 1000; n++) await ask(engine, `k${n}`)
          proxy.cut()
          await sleep(100)
        }
      }
      await cycle()
      const before = await heap()
      for (let i = 0; i < 4; i++) await cycle()
      const grown = (await heap()) - before
      redis.resume()
      console.log(`heap after 40,000 decisions and 40 connections without Redis: ${(grown / 1e6).toFixed(2)} MB more`)
      expect(grown).toBeLessThan(2e6)
    })
  })
})

async function heap(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let i = 0; i < 3; i++) {
    await sleep(50)
    gc()
  }
  return process.memoryUsage().heapUsed
}
