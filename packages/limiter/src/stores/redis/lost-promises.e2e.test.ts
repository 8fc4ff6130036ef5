import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, type Engine, fixedWindow, type RemoteStore } from 'headgate'
import { Redis } from 'ioredis-6'
import { createClient } from 'redis-6'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type FakeRedis, startFakeRedis } from '../../../../../test/fake-redis.ts'
import { until } from '../../../../../test/load.ts'
import { type RedisServer, startRedis } from '../../../../../test/redis.ts'
import { ALL_CLIENTS, CLUSTER_CLIENTS } from '../../../../../test/redis-clients.ts'
import { startRedisCluster } from '../../../../../test/redis-cluster.ts'
import type { RedisClient, RedisCluster, RedisStoreOptions } from './index.ts'

const ends: (() => unknown)[] = []
let warnings: string[]

beforeEach(() => {
  warnings = []
  const listen = (warning: Error & { code?: string }) => {
    if (warning.name === 'HeadgateWarning') warnings.push(`${warning.code} ${warning.message}`)
  }
  process.on('warning', listen)
  ends.push(() => process.off('warning', listen))
})

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const WINDOW = fixedWindow({ limit: 2, period: '1h' })
const item = (key: string) => [{ rule: 'r', name: 'l', limit: WINDOW, key }]
const urlsOf = (servers: readonly RedisServer[], login = '') =>
  servers.map(({ port }) => `redis://${login}127.0.0.1:${port}`)

interface Seen {
  readonly engine: Engine
  readonly store: RemoteStore
  /** What its events told, by kind. */
  readonly told: string[]
}

/** In a process that was told nothing yet: each warning comes once in its life. */
async function engineOn(client: RedisClient | RedisCluster, options?: RedisStoreOptions): Promise<Seen> {
  vi.resetModules()
  const { redisStore } = await import('./index.ts')
  const store = redisStore(client, options)
  const engine = createEngine({ store, timeoutMs: 500 })
  const told: string[] = []
  engine.on('degraded', ({ kind, reason }) => told.push(`degraded ${kind} ${reason}`))
  engine.on('error', ({ kind, message }) => told.push(`error ${kind} ${message}`))
  ends.push(
    () => store.close(),
    () => engine.close(),
  )
  return { engine, store, told }
}

/** Nothing is decided by the store, and one event says why. */
async function degradedOnce({ engine, told }: Seen): Promise<string> {
  const degraded = () => told.filter((each) => each.startsWith('degraded'))
  await until('the event', async () => (await engine.check(item('ann'))).degraded && degraded().length > 0)
  for (let i = 0; i < 10; i++) {
    expect((await engine.check(item('bob'))).source).toBe('local')
    await sleep(20)
  }
  expect(degraded()).toHaveLength(1)
  return degraded()[0] as string
}

const NO_SCRIPTS =
  /^HEADGATE_NO_SCRIPTS the server refuses (TIME|SCRIPT LOAD|EVALSHA) \(.*\): it keeps no limits, and each process counts for itself by onStoreFailure; allow TIME, SCRIPT LOAD and EVALSHA/

const voidOf = (kind: string) => new RegExp(`^degraded ${kind} the server refuses .* each process counts for itself`)

/** What a server may lack: by a setting of it, or for its user. */
const LACKS: readonly [name: string, settings: readonly string[], rights: readonly string[], kind: string][] = [
  ['TIME, which it does not have', ['--rename-command', 'TIME', ''], [], 'script'],
  ['SCRIPT, which it does not have', ['--rename-command', 'SCRIPT', ''], [], 'script'],
  ['EVALSHA, which it does not have', ['--rename-command', 'EVALSHA', ''], [], 'script'],
  ['TIME, which its user may not', [], ['-time'], 'permission'],
  ['SCRIPT LOAD, which its user may not', [], ['-script'], 'permission'],
  ['EVALSHA, which its user may not', [], ['-evalsha'], 'permission'],
  ['a command of the script, which its user may not', [], ['-mget'], 'permission'],
  ['the keys, which its user may not', [], ['resetkeys', '~other:*'], 'permission'],
]
const allow = (servers: readonly RedisServer[], rights: readonly string[]) =>
  Promise.all(
    servers.map((each) => each.command('ACL', 'SETUSER', 'limited', 'on', '>pw', 'allkeys', '&*', '+@all', ...rights)),
  )

/** GLIDE is told of that it cannot listen, too. */
const ofScripts = (told: readonly string[]) => told.filter((each) => !each.startsWith('HEADGATE_NO_SUBSCRIPTION'))

describe.each(LACKS)('A server without %s', (_, settings, rights, kind) => {
  it.each(ALL_CLIENTS)(
    'is told of once, with the promise that is void, by $name (otovo/redis-rate-limiters PR#11)',
    async ({ make }) => {
      const server = await startRedis(settings)
      ends.push(() => server.stop())
      await allow([server], rights)
      const degraded = await degradedOnce(await engineOn(make(urlsOf([server], 'limited:pw@')[0] as string)))
      expect(degraded).toMatch(voidOf(kind))
      expect(ofScripts(warnings)).toEqual([expect.stringMatching(NO_SCRIPTS)])
    },
  )

  it('is told of once on a cluster, by every client', async () => {
    const cluster = await startRedisCluster(settings, 0)
    ends.push(() => cluster.stop())
    await allow(cluster.servers, rights)
    for (const { name, make } of CLUSTER_CLIENTS) {
      const degraded = await degradedOnce(await engineOn(make(urlsOf(cluster.servers, 'limited:pw@'))))
      expect([name, degraded]).toEqual([name, expect.stringMatching(voidOf(kind))])
      expect(ofScripts(warnings.splice(0))).toEqual([expect.stringMatching(NO_SCRIPTS)])
    }
  })
})

describe('A server that is too old', () => {
  it.each(ALL_CLIENTS)('is told of once, with the promise that it could not keep, by $name', async ({ make }) => {
    const fake: FakeRedis = await startFakeRedis()
    ends.push(() => fake.close())
    const info = '# Server\r\nredis_version:6.2.14\r\nrole:master\r\nloading:0\r\n'
    fake.reply = ([command = '', argument]) => {
      // One that is older than HELLO, and one that has it.
      if (/^hello$/i.test(command) && argument === undefined) return '-ERR unknown command `HELLO`\r\n'
      return /^info$/i.test(command) ? `$${info.length}\r\n${info}\r\n` : undefined
    }
    const degraded = await degradedOnce(await engineOn(make(fake.url)))
    expect(degraded).toMatch(/^degraded connection the server is Redis 6\.2, whose scripts could stop half-way/)
    expect(warnings).toEqual([
      expect.stringMatching(
        /^HEADGATE_OLD_SERVER the server is Redis 6\.2, .*a part of the limits charged: it keeps no limits.*use Redis 7\.0 or later, or Valkey$/,
      ),
    ])
  })
})

const NO_SUBSCRIPTION =
  /^HEADGATE_NO_SUBSCRIPTION no subscription to rate_limit:~:changes \(.*\): refusals are repeated for 1 s at most/

/** Everything is decided by the store; what is lost is how soon a refusal ends. */
async function worksButIsTold({ engine, store, told }: Seen, why: RegExp, events: number): Promise<void> {
  await until('the store', async () => (await engine.check(item('ann'))).source === 'store')
  await until('a warning', () => warnings.length > 0, 20_000)
  await sleep(1000)
  expect(warnings).toEqual([expect.stringMatching(NO_SUBSCRIPTION)])
  expect(warnings[0]).toMatch(why)
  const lost = told.filter((each) => each.startsWith('error subscription'))
  expect(lost).toHaveLength(events)
  expect(told).toEqual(lost)
  // A refusal is remembered, and still ends within its second.
  await engine.reset(item('eve'))
  for (let i = 0; i < 4; i++) await engine.check(item('eve'))
  const other = createEngine({ store, denyCache: false })
  await other.reset(item('eve'))
  await other.close()
  await until('a refusal that ends', async () => (await engine.check(item('eve'))).allowed, 1500)
}

describe('A subscription that cannot be made', () => {
  let server: RedisServer

  beforeEach(async () => {
    server = await startRedis()
    ends.push(() => server.stop())
  })

  it.each([
    ['SUBSCRIBE', '-subscribe', /NOPERM|no permissions/],
    ['PUBLISH', '-publish', /NOPERM|no permissions/],
    ['the channel', 'resetchannels', /NOPERM|No permissions/],
  ])('because the user may not %s, is told of once, by every client that can listen', async (_, right, why) => {
    await allow([server], [right])
    for (const { make } of ALL_CLIENTS.filter(({ name }) => name !== 'Valkey GLIDE')) {
      const seen = await engineOn(make(urlsOf([server], 'limited:pw@')[0] as string))
      await worksButIsTold(seen, why, 1)
      warnings.length = 0
    }
  })

  it('is told of once on a cluster, by every client', async () => {
    const cluster = await startRedisCluster([], 0)
    ends.push(() => cluster.stop())
    await allow(cluster.servers, ['-publish'])
    for (const { name, make } of CLUSTER_CLIENTS) {
      const [why, times] = name === 'Valkey GLIDE' ? ([/cannot listen/, 0] as const) : ([/NOPERM/, 1] as const)
      await worksButIsTold(await engineOn(make(urlsOf(cluster.servers, 'limited:pw@'))), why, times)
      warnings.length = 0
    }
  })

  it('because duplicate() throws for it, is told of once', async () => {
    const client = new Redis(server.url, { lazyConnect: true })
    const duplicate = client.duplicate.bind(client)
    client.duplicate = (override) => {
      if (override?.autoResubscribe === false) throw new Error('one client is enough')
      return duplicate(override)
    }
    await worksButIsTold(await engineOn(client), /\(one client is enough\)/, 1)
  })

  it('because the client has no way to listen, is told of once', async () => {
    const { make } = ALL_CLIENTS.find(({ name }) => name === 'Valkey GLIDE') as (typeof ALL_CLIENTS)[number]
    await worksButIsTold(await engineOn(make(server.url)), /\(this client cannot listen\)/, 0)
    warnings.length = 0
    const sender = new Redis(server.url)
    ends.push(() => sender.disconnect())
    const send = ([command = '', ...args]: readonly string[]) => sender.call(command, ...args)
    await worksButIsTold(await engineOn({ send }), /\(this client cannot listen\)/, 0)
  })

  it('because the subscriber is connected to another server, is told of once', async () => {
    const elsewhere = await startRedis()
    ends.push(() => elsewhere.stop())
    const ioredis = new Redis(elsewhere.url)
    const nodeRedis = createClient({ url: elsewhere.url })
    nodeRedis.on('error', () => undefined)
    await nodeRedis.connect()
    ends.push(
      () => ioredis.disconnect(),
      () => nodeRedis.destroy(),
    )
    for (const subscriber of [ioredis, nodeRedis]) {
      const seen = await engineOn(new Redis(server.url, { lazyConnect: true }), { subscriber })
      await worksButIsTold(seen, /\(what is published where counters are kept is not heard/, 1)
      warnings.length = 0
    }
  })

  it('because the subscriber was never connected, is told of once', async () => {
    const subscriber = createClient({ url: server.url })
    const seen = await engineOn(new Redis(server.url, { lazyConnect: true }), { subscriber })
    await worksButIsTold(seen, /is not heard within/, 1)
  })

  it.each([null, 5, 'redis://127.0.0.1', {}, [], { duplicate() {}, subscribe() {} }, { send: async () => 'OK' }])(
    'because the subscriber is none, is an error at once: %j',
    async (subscriber) => {
      const { redisStore } = await import('./index.ts')
      const client = new Redis(server.url, { lazyConnect: true })
      expect(() => redisStore(client, { subscriber: subscriber as unknown as RedisClient })).toThrow(
        expect.objectContaining({
          code: 'HEADGATE_INVALID_ARGUMENT',
          message: expect.stringMatching(/^subscriber: .*is no client of ioredis, iovalkey or node-redis/),
        }),
      )
      expect(warnings).toEqual([])
    },
  )
})

it('A client whose duplicate() throws is one that is away: policies decide, and it is said why', async () => {
  const server = await startRedis()
  ends.push(() => server.stop())
  const client = new Redis(server.url, { lazyConnect: true })
  const duplicate = client.duplicate.bind(client)
  client.duplicate = () => {
    throw new Error('no more clients')
  }
  const seen = await engineOn(client)
  expect(await degradedOnce(seen)).toBe('degraded connection no more clients')
  client.duplicate = duplicate
  await until('the store', async () => (await seen.engine.check(item('cat'))).source === 'store', 5000)
})
