import { createEngine, fixedWindow } from 'headgate'
import { type RedisClient, redisStore } from 'headgate/redis'
import { Redis as Ioredis5 } from 'ioredis-5'
import { Redis as Ioredis6 } from 'ioredis-6'
import { Redis as Iovalkey } from 'iovalkey'
import { createSentinel as createSentinel5 } from 'redis-5'
import { createSentinel as createSentinel6 } from 'redis-6'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startLoad, until } from '../../../../../test/load.ts'
import { type Sentinels, startSentinels } from '../../../../../test/sentinels.ts'

const PASSWORD = 'hunter2'
const DATABASE = 3
const WINDOW = fixedWindow({ limit: 100_000, period: '1d' })

let sentinels: Sentinels
const ends: (() => unknown)[] = []

beforeAll(async () => {
  sentinels = await startSentinels(PASSWORD)
})

afterAll(async () => {
  for (const end of ends.reverse()) await end()
  await sentinels.stop()
})

const ioredis = () => ({
  // The first is never there.
  sentinels: [{ host: '127.0.0.1', port: 1 }, ...sentinels.nodes],
  name: sentinels.name,
  password: PASSWORD,
  db: DATABASE,
  keyPrefix: 'mine:',
  lazyConnect: true,
})
const nodeRedis = () => ({
  name: sentinels.name,
  sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }, ...sentinels.nodes],
  nodeClientOptions: { password: PASSWORD, database: DATABASE },
})

const clients: Record<string, () => RedisClient | Promise<RedisClient>> = {
  'ioredis 5': () => new Ioredis5(ioredis()),
  'ioredis 6': () => new Ioredis6(ioredis()),
  iovalkey: () => new Iovalkey(ioredis()),
  'node-redis 6': () => createSentinel6({ ...nodeRedis(), keyPrefix: 'mine:' }),
  'node-redis 5 by send': async () => {
    const sentinel = createSentinel5(nodeRedis())
    sentinel.on('error', () => undefined)
    await sentinel.connect()
    ends.push(() => sentinel.destroy())
    return { send: (args) => sentinel.sendCommand(false, [...args]) }
  },
}

it('A Sentinel of node-redis 5 is refused by what it lacks, with the way out', () => {
  const client = createSentinel5(nodeRedis())
  expect(() => redisStore(client as unknown as RedisClient)).toThrow(
    /^client: a Sentinel of node-redis 5 keeps its settings to itself; give one of node-redis 6, or \{ send:/,
  )
})

it('A failover surfaces nothing: policies decide for its length, and every client is back by itself', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  const seen = await Promise.all(
    Object.entries(clients).map(async ([name, make]) => {
      const store = redisStore(await make(), { prefix: name.replaceAll(' ', '-') })
      const engine = createEngine({ store, timeoutMs: 200 })
      ends.push(
        () => store.close(),
        () => engine.close(),
      )
      const check = () => engine.check([{ rule: 'r', name: 'l', limit: WINDOW, key: 'k' }])
      await until(`the store through ${name}`, async () => (await check()).source === 'store', 10_000)
      return { name, check, load: startLoad(engine, 50) }
    }),
  )
  const dropped = warn.mock.calls.filter(([message]) => /key prefix "mine:" is not used/.test(`${message}`))
  expect(dropped).toHaveLength(4)
  warn.mockRestore()

  await sentinels.master.kill()
  const killedMs = performance.now()
  await until('a failover', async () => (await sentinels.masterPort()) === sentinels.replica.port, 20_000)
  for (const { name, check } of seen)
    await until(`the new master through ${name}`, async () => (await check()).source === 'store', 10_000)
  await sentinels.master.start('--replicaof', '127.0.0.1', `${sentinels.replica.port}`)
  const backMs = performance.now()
  await until('a while', () => performance.now() > backMs + 1000)

  for (const { name, check, load } of seen) {
    expect((await check()).source, name).toBe('store')
    await load.stop()
    expect(
      load.asked.filter(({ error }) => error !== undefined),
      name,
    ).toEqual([])
    const during = load.since(killedMs).map(({ decision }) => decision)
    expect(during.some((decision) => decision?.source === 'local' && decision.degraded)).toBe(true)
    // node-redis lets commands wait while it asks the Sentinels again.
    const after = load.since(backMs)
    expect(after.filter(({ decision }) => decision?.source === 'store').length, name).toBeGreaterThan(after.length / 2)
  }
  const look = new Ioredis5({ port: sentinels.replica.port, password: PASSWORD, db: DATABASE })
  const keys = Object.keys(clients).map((name) => `${name.replaceAll(' ', '-')}:r:l:k`)
  expect((await look.keys('*:r:l:k')).sort()).toEqual(keys.sort())
  look.disconnect()
})
