import fc from 'fast-check'
import {
  type CheckItem,
  concurrency,
  createEngine,
  type Engine,
  fixedWindow,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-6'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../../test/load.ts'
import { startRedis } from '../../../../../test/redis.ts'
import { ALL_CLIENTS, CLUSTER_CLIENTS } from '../../../../../test/redis-clients.ts'
import { startRedisCluster } from '../../../../../test/redis-cluster.ts'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const LIMITS: readonly Limit[] = [
  tokenBucket({ limit: 5, period: '1m' }),
  tokenBucket({ limit: 5, period: '1m', initial: 'empty' }),
  leakyBucket({ limit: 5, period: '1m', queue: 3 }),
  fixedWindow({ limit: 5, period: '1m' }),
  fixedWindow({ limit: 5, period: 'month', align: 'calendar', timeZone: 'Asia/Kathmandu' }),
  slidingWindow({ limit: 5, period: '1m' }),
  slidingLog({ limit: 5, period: '1m' }),
]

/** What callers may be called, so that a key would break, or stand in another slot. */
const NASTY = ['{', '}', '{}', '{}x', 'a{b}c{d}', '{{x}}', '}{', '', '{user}', ':', '~', '\0', '\r\n', '*', '\ud800{}']
const keys = fc.uniqueArray(fc.oneof(fc.constantFrom(...NASTY), fc.string({ unit: 'binary' })), {
  minLength: 2,
  maxLength: 3,
})

/** All that can be done, on counters of these callers: of each its own, and all of them in one call. */
async function doAll(engine: Engine, callers: readonly string[]): Promise<void> {
  const slots = concurrency({ limit: 5, ttl: '1m' })
  const penalty = { refusals: 2, withinMs: 60_000, blockMs: 10 }
  for (const [i, limit] of LIMITS.entries()) {
    const of = (key: string, rest: object = {}): CheckItem => ({ rule: `r${i}`, name: `l${i}`, limit, key, ...rest })
    const all = callers.map((key, n) => of(key, { name: `l${i}-${n}` }))
    const beside = [of('', { penalty }), of('', { group: 'candidate' }), of('', { group: 'shadow', name: 'other' })]
    for (const items of [...callers.map((key) => [of(key)]), all]) {
      const { receipt } = await engine.check(items)
      await engine.peek(items)
      await engine.takeUpTo(items, 2)
      await engine.acquire(items, { timeoutMs: 1 })
      await engine.refund(items, { receipt, id: 'twice' })
      await (await engine.reserve(items)).reservation?.commit(1)
      await (await engine.reserve(items, { id: 'held' })).reservation?.extend(1000)
      await engine.reset(items)
      await engine.block(items, { durationMs: 1000 })
      await engine.unblock(items)
    }
    for (let n = 0; n < 8; n++) await engine.check(beside)
  }
  const held = await engine.check(callers.map((key, n) => ({ name: `s${n}`, limit: slots, key })))
  await held.renew?.()
  await held.release?.()
}

interface Call {
  readonly declared: readonly string[]
  /** Keys that commands of the script were given. */
  readonly touched: string[]
}

/** What of a script's commands is a key: all of MGET's and DEL's, the first of the others', the text of PUBLISH. */
function keysOf([command = '', ...args]: readonly string[]): readonly string[] {
  if (command === 'TIME') return []
  if (command === 'MGET' || command === 'DEL') return args
  return command === 'PUBLISH' ? args.slice(1) : args.slice(0, 1)
}

/** Hears every command that a server runs, those of scripts too. */
async function listenTo(url: string): Promise<{ calls: Call[]; heardAll(): Promise<void> }> {
  const client = new Redis(url)
  const monitor = await client.monitor()
  ends.push(
    () => client.disconnect(),
    () => monitor.disconnect(),
  )
  const calls: Call[] = []
  let echoed = ''
  monitor.on('monitor', (_: string, args: string[], source: string) => {
    const [command = '', ...rest] = args
    if (source === 'lua') calls.at(-1)?.touched.push(...keysOf([command.toUpperCase(), ...rest]))
    else if (/^eval(sha)?$/i.test(command)) calls.push({ declared: rest.slice(2, 2 + Number(rest[1])), touched: [] })
    else if (/^echo$/i.test(command)) echoed = rest[0] as string
  })
  return {
    calls,
    async heardAll() {
      const word = `${Math.random()}`
      await client.echo(word)
      await until('all that the server did', () => echoed === word)
    },
  }
}

/** A store was told to do everything: what its calls declared and touched. */
async function callsOf(urls: readonly string[], client: Parameters<typeof redisStore>[0]): Promise<Call[]> {
  const servers = await Promise.all(urls.map(listenTo))
  const store = redisStore(client)
  const engine = createEngine({ store, timeoutMs: 10_000, denyCache: false })
  ends.push(
    () => store.close(),
    () => engine.close(),
  )
  const faults: unknown[] = []
  engine.on('error', (fault) => faults.push(fault))
  await fc.assert(
    fc.asyncProperty(keys, (callers) => doAll(engine, callers)),
    { numRuns: 8 },
  )
  for (const server of servers) await server.heardAll()
  expect(faults).toEqual([])
  return servers.flatMap(({ calls }) => calls)
}

function expectDeclared(calls: readonly Call[], form: RegExp): void {
  expect(calls.length).toBeGreaterThan(500)
  for (const { declared, touched } of calls) {
    expect(declared.length).toBeGreaterThan(0)
    // Nothing but keys is in KEYS, and none that the script does not read.
    for (const key of declared) expect(key).toMatch(form)
    expect(new Set(touched)).toEqual(new Set(declared))
  }
}

describe('A call of the script', () => {
  it.each(ALL_CLIENTS)(
    'by $name touches the keys that it declares, and declares nothing else (Effect-TS/effect-smol#2328, vutran1710/PyrateLimiter PR#151)',
    async ({ make }) => {
      const server = await startRedis()
      ends.push(() => server.stop())
      expectDeclared(await callsOf([server.url], make(server.url)), /^rate_limit:(r\d|~|s\d)/)
    },
  )

  it.each(CLUSTER_CLIENTS)(
    'on a cluster, by $name, has all of its keys in one slot, whatever callers are called (spring-cloud/spring-cloud-gateway#248, SGrondin/bottleneck#180)',
    async ({ make }) => {
      const cluster = await startRedisCluster([], 0)
      ends.push(() => cluster.stop())
      const urls = cluster.servers.map(({ url }) => url)
      const calls = await callsOf(urls, make(urls))
      expectDeclared(calls, /^rate_limit:\{\d+\}:(r\d|~|s\d)/)
      const look = new Redis(urls[0] as string, { enableAutoPipelining: true })
      ends.push(() => look.disconnect())
      const all = [...new Set(calls.flatMap(({ declared }) => declared))]
      const slots = await Promise.all(all.map((key) => look.cluster('KEYSLOT', key)))
      const slotOf = new Map(all.map((key, i) => [key, slots[i]]))
      for (const { declared } of calls) expect(new Set(declared.map((key) => slotOf.get(key))).size).toBe(1)
    },
  )
})
