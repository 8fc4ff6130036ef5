import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, fixedWindow } from 'headgate'
import { redisStore } from 'headgate/redis'
import { describe, expect, it } from 'vitest'
import { type Load, record, startLoad, until } from '../../../../test/load.ts'
import { freePort, type RedisServer, startRedis } from '../../../../test/redis.ts'
import { CLIENTS, type TestClient } from '../../../../test/redis-clients.ts'
import { startProxy, type TcpProxy } from '../../../../test/tcp-proxy.ts'

/** How soon after it is back the store decides everything again, in ms. */
const BACK_MS = 1000
/** Longer than the default: here it is the return that is measured, not the deadline. */
const TIMEOUT_MS = 200

interface Stage {
  readonly redis: RedisServer
  readonly proxy: TcpProxy
}

interface Outage {
  readonly name: string
  /** Where the client is pointed to; default: through the proxy. */
  url?(stage: Stage): string
  /** Before the store is made; where it is given, there is no healthy time before the outage. */
  before?(stage: Stage): Promise<void> | void
  begin?(stage: Stage): Promise<void> | void
  end(stage: Stage): Promise<void> | void
  /** Kinds of fault that may be told, beside answers that come too late. */
  readonly kinds: readonly string[]
  readonly lastsMs?: number
  /** True where the store is away only for moments. */
  readonly brief?: boolean
}

const proxied = ({ proxy }: Stage) => `redis://127.0.0.1:${proxy.port}`

const outages: readonly Outage[] = [
  {
    name: 'Redis is absent at the start',
    before: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.start(),
    kinds: ['connection'],
  },
  {
    name: 'connections are refused',
    begin: ({ proxy }) => proxy.refuse(),
    end: ({ proxy }) => proxy.accept(),
    kinds: ['connection'],
  },
  {
    name: 'the password is wrong',
    url: ({ proxy }) => `redis://limiter:secret@127.0.0.1:${proxy.port}`,
    before: () => undefined,
    end: async ({ redis }) => {
      await redis.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~*', '+@all')
    },
    kinds: ['auth', 'subscription'],
  },
  {
    name: 'the database does not exist',
    url: ({ proxy }) => `redis://127.0.0.1:${proxy.port}/99`,
    before: () => undefined,
    end: async ({ redis }) => {
      await redis.kill()
      await redis.start('--databases', '100')
    },
    kinds: ['connection'],
  },
  {
    name: 'Redis is stopped (SIGSTOP)',
    begin: ({ redis }) => redis.pause(),
    end: ({ redis }) => redis.resume(),
    kinds: ['connection'],
    lastsMs: 2500,
  },
  {
    name: 'packets are dropped',
    begin: ({ proxy }) => proxy.drop(),
    end: ({ proxy }) => proxy.restore(),
    kinds: ['connection'],
    lastsMs: 2500,
  },
  {
    name: 'the network takes two seconds',
    begin: ({ proxy }) => proxy.delay(2000),
    end: ({ proxy }) => proxy.delay(0),
    kinds: ['connection'],
    lastsMs: 4000,
  },
  {
    name: 'Redis is killed (kill -9) and started again',
    begin: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.start(),
    kinds: ['connection'],
  },
  {
    name: 'every connection is killed (CLIENT KILL)',
    begin: async ({ redis }) => {
      for (let i = 0; i < 5; i++) {
        await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        await sleep(60)
      }
    },
    end: () => undefined,
    kinds: ['connection'],
    brief: true,
  },
]

async function stageFor(): Promise<Stage & { close(): Promise<void> }> {
  const redis = await startRedis([], await freePort())
  const proxy = await startProxy(redis.port)
  return {
    redis,
    proxy,
    async close() {
      await proxy.close()
      await redis.stop()
    },
  }
}

async function live(outage: Outage, { name, make }: TestClient): Promise<void> {
  const stage = await stageFor()
  await outage.before?.(stage)
  const store = redisStore(make((outage.url ?? proxied)(stage)))
  const engine = createEngine({ store, timeoutMs: TIMEOUT_MS })
  const events = record(engine)
  const load = startLoad(engine, 200, (n) => `k${n % 20}`)
  try {
    if (outage.before === undefined) {
      await until('decisions from the store', () => load.asked.at(-1)?.decision?.source === 'store')
    }
    await sleep(200)
    await outage.begin?.(stage)
    await sleep(outage.lastsMs ?? 1000)
    if (!outage.brief)
      expect(load.asked.findLast(({ decision }) => decision !== undefined)?.decision?.source).toBe('local')
    await outage.end(stage)
    const backMs = performance.now()
    await sleep(BACK_MS + 500)
    await exactly(20, engine)
    await load.stop()
    const exactAgainMs = judge(load, events, outage, backMs)
    console.log(`${name}, ${outage.name}: exact again after ${exactAgainMs.toFixed(0)} ms`)
  } finally {
    await load.stop()
    await engine.close()
    await store.close()
    await stage.close()
  }
}

/** A fresh key is counted to the unit. */
async function exactly(limit: number, engine: ReturnType<typeof createEngine>): Promise<void> {
  const item = { rule: 'exact', name: 'window', limit: fixedWindow({ limit, period: '1h' }), key: 'fresh' }
  const decisions = await Promise.all(Array.from({ length: limit * 2 }, () => engine.check([item])))
  expect(decisions.filter(({ source }) => source !== 'store')).toHaveLength(0)
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(limit)
}

/** @returns how long after it was back the store decided everything again, in ms */
function judge(load: Load, events: string[], outage: Outage, backMs: number): number {
  // Nothing surfaces: every decision is one, and says who made it. (Counted first: the other clients go on meanwhile.)
  const odd = load.asked.filter(({ error, decision }) => {
    if (error !== undefined || decision?.allowed !== true) return true
    return decision.source === 'store' ? decision.degraded : decision.source !== 'local' || !decision.degraded
  })
  expect(odd).toHaveLength(0)
  const after = load.since(backMs)
  const lastWithout = after.findLastIndex(({ decision }) => decision?.source !== 'store')
  const exactAgainMs = (after[lastWithout + 1]?.begunMs ?? Number.POSITIVE_INFINITY) - backMs
  expect(exactAgainMs).toBeLessThanOrEqual(BACK_MS)
  // One event for each transition, and errors by kind and second, never by request.
  const transitions = events.filter((event) => !event.startsWith('error'))
  expect(transitions.every((event, i) => event.startsWith(i % 2 === 0 ? 'degraded' : 'recovered'))).toBe(true)
  expect(transitions.length % 2).toBe(0)
  expect(transitions.length).toBeLessThanOrEqual(12)
  expect(events.length - transitions.length).toBeLessThanOrEqual(12)
  const kinds = events.filter((event) => event !== 'recovered').map((event) => event.split(' ')[1])
  for (const kind of kinds) expect(['timeout', 'stale', ...outage.kinds]).toContain(kind)
  return exactAgainMs
}

describe.each(outages)('while $name', (outage) => {
  it.concurrent.each(CLIENTS)('$name decides, and is exact again within a second', async (client) => {
    await live(outage, client)
  })
})
