import { setImmediate as nextTurn } from 'node:timers/promises'
import { GlideClient } from '@valkey/valkey-glide'
import { Redis as Ioredis5 } from 'ioredis-5'
import { Redis as Ioredis6 } from 'ioredis-6'
import { Redis as Iovalkey } from 'iovalkey'
import { BasicClientSideCache, createClient as createClient5, RESP_TYPES } from 'redis-5'
import { createClient as createClient6 } from 'redis-6'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../../../../test/redis.ts'
import { glideSettings } from '../../../../../test/redis-clients.ts'
import { tokenBucket } from '../../algorithms/token-bucket/index.ts'
import { createEngine } from '../../engine.ts'
import {
  type IoredisClient,
  type NodeRedisClient,
  type RedisClient,
  type RedisStoreOptions,
  redisStore,
} from './index.ts'

const PASSWORD = 'correct horse'

let server: RedisServer
let guarded: RedisServer
/** Looks into database 0 and 3 of the server. */
let eye: Ioredis5

beforeAll(async () => {
  ;[server, guarded] = await Promise.all([startRedis(), startRedis(['--requirepass', PASSWORD])])
  eye = new Ioredis5(server.url)
})

afterAll(async () => {
  eye.disconnect()
  await Promise.all([server.stop(), guarded.stop()])
})

beforeEach(async () => {
  await eye.flushall()
})

const leftovers: (() => unknown)[] = []
afterEach(async () => {
  for (const end of leftovers.splice(0)) await end()
})

/** The makers of clients that take settings in the two libraries' own words. */
const makers = {
  'ioredis 5': (options: object = {}) => new Ioredis5({ port: server.port, ...options }),
  'ioredis 6': (options: object = {}) => new Ioredis6({ port: server.port, ...options }),
  iovalkey: (options: object = {}) => new Iovalkey({ port: server.port, ...options }),
  'node-redis 5': (options: object = {}) => createClient5({ url: server.url, ...options }),
  'node-redis 6': (options: object = {}) => createClient6({ url: server.url, ...options }),
}
type Maker = keyof typeof makers
type MadeClient = IoredisClient | NodeRedisClient

function make(name: Maker, options?: object): MadeClient {
  const client: MadeClient = makers[name](options)
  client.on('error', () => undefined)
  leftovers.push(() => {
    if ('status' in client) client.disconnect()
    else if (client.isReady) client.destroy()
  })
  return client
}

const limit = tokenBucket({ limit: 10, period: '1h' })

/** Ten of eleven pass, the counter stands where it should, and the numbers are numbers. */
async function expectToCount(client: RedisClient, options: RedisStoreOptions = {}): Promise<void> {
  const store = redisStore(client, options)
  const engine = createEngine({ store, timeoutMs: 10_000 })
  leftovers.push(() => store.close())
  const calls = Array.from({ length: 11 }, () => engine.check([{ rule: 'login', name: 'ip', limit, key: '::1' }]))
  const decisions = await Promise.all(calls)
  expect(decisions.map(({ source }) => source)).toEqual(Array(11).fill('store'))
  expect(decisions.map(({ limits }) => limits[0]?.remaining)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0])
  expect(decisions[10]).toMatchObject({ allowed: false, limitedBy: 'ip' })
  await engine.close()
}

const all = Object.keys(makers) as Maker[]
const ioredis = all.filter((name) => name.startsWith('io'))
const nodeRedis = all.filter((name) => name.startsWith('node'))

describe.each(all)('a client of %s', (name) => {
  it('counts under prefix:rule:limit:value and nowhere else', async () => {
    await expectToCount(make(name))
    await expectToCount(make(name), { prefix: 'other' })
    expect((await eye.keys('*')).sort()).toEqual(['other:login:ip:%3A%3A1', 'rate_limit:login:ip:%3A%3A1'])
  })

  it('counts in its own database', async () => {
    await expectToCount(make(name, name.startsWith('io') ? { db: 3 } : { database: 3 }))
    expect(await eye.dbsize()).toBe(0)
    const third = eye.duplicate({ db: 3 })
    expect(await third.keys('*')).toEqual(['rate_limit:login:ip:%3A%3A1'])
    third.disconnect()
  })

  it('logs in as it does', async () => {
    const at = name.startsWith('io') ? { port: guarded.port } : { url: guarded.url }
    await expectToCount(make(name, { ...at, password: PASSWORD }), { prefix: name.replace(' ', '-') })
  })

  it('has its key prefix dropped, with one warning that says what to do', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    await expectToCount(make(name, { keyPrefix: 'mine:' }))
    // node-redis 5 knows no such option.
    const warnings = warn.mock.calls.filter(([message]) =>
      /the client's key prefix "mine:" is not used for counters/.test(`${message}`),
    )
    expect(warnings.length).toBe(1)
    expect(warnings[0]?.[0]).toMatch(/set prefix: instead$/)
    expect(await eye.keys('*')).toEqual(['rate_limit:login:ip:%3A%3A1'])
    warn.mockRestore()
  })

  it('is not touched: neither connected, nor set otherwise, nor listened to', async () => {
    const client = make(name, name.startsWith('io') ? { lazyConnect: true } : {})
    const seen = () => {
      const emitter = client as unknown as NodeJS.EventEmitter
      const listeners = emitter.eventNames().map((event) => [event, emitter.listenerCount(event)])
      return JSON.stringify({
        listeners,
        options: client.options,
        status: 'status' in client ? client.status : client.isReady,
      })
    }
    const before = seen()
    await expectToCount(client)
    await nextTurn()
    expect(seen()).toBe(before)
  })

  it('goes on while a store on it comes and goes', async () => {
    const client = make(name)
    if ('isReady' in client) await client.connect()
    await expectToCount(client)
    for (const end of leftovers.splice(1)) await end()
    const ping = 'call' in client ? client.call('PING') : client.sendCommand(['PING'])
    expect(await ping).toBe('PONG')
  })
})

describe.each(ioredis)('settings of %s that could disturb', (name) => {
  it.each([
    ['stringNumbers', { stringNumbers: true }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
    ['lazyConnect', { lazyConnect: true }],
    ['no ready check', { enableReadyCheck: false }],
    ['no offline queue', { enableOfflineQueue: false, lazyConnect: true }],
    ['a patient queue', { maxRetriesPerRequest: null, autoResendUnfulfilledCommands: true, retryStrategy: () => 5000 }],
    ['a command time-out', { commandTimeout: 1 }],
    ['a connection name', { connectionName: 'mine' }],
    ['read-only', { readOnly: true, lazyConnect: true }],
    ['RESP3', { protocol: 3 }],
    ['RESP2', { protocol: 2 }],
    ['scripts of its own', { scripts: { decide: { lua: 'return 1', numberOfKeys: 0 } } }],
  ])('%s', async (_, options) => {
    await expectToCount(make(name, options))
  })
})

describe.each(nodeRedis)('settings of %s that could disturb', (name) => {
  it.each([
    ['RESP2', { RESP: 2 }],
    ['RESP3', { RESP: 3 }],
    ['numbers as strings', { commandOptions: { typeMapping: { [RESP_TYPES.NUMBER]: String } } }],
    ['replies as buffers', { commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } } }],
    ['a short command time-out', { commandOptions: { timeout: 1 } }],
    ['no offline queue', { disableOfflineQueue: true }],
    ['a queue of one', { commandsQueueMaxLength: 1 }],
    ['a ping of its own', { pingInterval: 10 }],
    ['a patient reconnect', { socket: { port: 0, reconnectStrategy: () => 5000 } }],
    ['a client name', { name: 'mine' }],
  ])('%s', async (_, options) => {
    const settings = 'socket' in options ? { socket: { ...options.socket, port: server.port } } : options
    await expectToCount(make(name, settings))
  })

  it('a cache of its own, which stays as it is', async () => {
    const cache = new BasicClientSideCache({ ttl: 0, maxEntries: 100, evictPolicy: 'LRU' })
    const client = make(name, { RESP: 3, clientSideCache: cache })
    if ('isReady' in client) await client.connect()
    await eye.set('own', 'value')
    const get = () => (client as unknown as { get(key: string): Promise<string> }).get('own')
    await get()
    const size = cache.size()
    await expectToCount(client)
    for (const end of leftovers.splice(1)) await end()
    expect([cache.size(), await get()]).toEqual([size, 'value'])
  })

  it('a view of the client with a type mapping', async () => {
    const client = make(name) as unknown as { withTypeMapping(mapping: object): RedisClient }
    await expectToCount(client.withTypeMapping({ [RESP_TYPES.NUMBER]: String }))
  })
})

describe('a client of Valkey GLIDE', () => {
  async function glide(url: string, settings: object = {}) {
    const client = await GlideClient.createClient({ ...glideSettings(url), ...settings })
    leftovers.push(() => client.close())
    return client
  }

  it.each([
    ['RESP2', { protocol: 0 }],
    ['RESP3', { protocol: 1 }],
    ['replies as buffers', { defaultDecoder: 0 }],
    ['a short time-out', { requestTimeout: 1, lazyConnect: true }],
    ['one request at a time', { inflightRequestsLimit: 1 }],
    ['a client name', { clientName: 'mine' }],
  ])('%s', async (_, settings) => {
    await expectToCount(await glide(server.url, settings))
    expect(await eye.keys('*')).toEqual(['rate_limit:login:ip:%3A%3A1'])
  })

  it('counts in its own database, and logs in as it does', async () => {
    await expectToCount(await glide(`redis://127.0.0.1:${guarded.port}/3`, { credentials: { password: PASSWORD } }))
    expect(await eye.dbsize()).toBe(0)
  })

  it('goes on, set as it was, while a store on it comes and goes', async () => {
    const client = await glide(server.url)
    const before = JSON.stringify(client, ['config', 'requestTimeout'])
    await expectToCount(client)
    for (const end of leftovers.splice(1)) await end()
    expect(await client.ping()).toBe('PONG')
    expect(JSON.stringify(client, ['config', 'requestTimeout'])).toBe(before)
  })
})

describe('any other client, by how it sends a command', () => {
  it('counts', async () => {
    const client = make('ioredis 6')
    if (!('call' in client)) throw new Error('no ioredis')
    await expectToCount({ send: ([command = '', ...args]) => client.call(command, ...args) })
  })

  it('has a send that throws, or answers at once, taken for one that rejects or resolves', async () => {
    let asked = 0
    const send = (): never => {
      asked += 1
      throw new Error('not yet')
    }
    const store = redisStore({ send })
    const engine = createEngine({ store })
    leftovers.push(() => store.close())
    expect((await engine.check([{ rule: 'login', name: 'ip', limit, key: 'k' }])).source).toBe('local')
    expect(asked).toBeGreaterThan(0)
    await engine.close()
  })
})

describe('what is no client of a known shape', () => {
  it.each([
    undefined,
    null,
    'redis://127.0.0.1',
    5,
    {},
    [],
    () => null,
    new Map(),
    { duplicate() {}, sendCommand() {} },
  ])('is refused by its name: %s', (client) => {
    try {
      redisStore(client as unknown as RedisClient)
    } catch (error) {
      expect(error).toMatchObject({
        code: 'HEADGATE_CLIENT_UNKNOWN',
        message: expect.stringMatching(/^client: .*give a client/),
      })
      return
    }
    throw new Error('accepted')
  })

  it.each(['', ':', 'a b', 'ü', '{x}', '-a', 'x'.repeat(65), 5, null])('a prefix of %j is refused', (prefix) => {
    const client = make('ioredis 5', { lazyConnect: true })
    expect(() => redisStore(client, { prefix: prefix as string })).toThrow(/^prefix: .* is not a letter or digit/)
  })

  it('an option that does not exist is refused', () => {
    const client = make('ioredis 5', { lazyConnect: true })
    expect(() => redisStore(client, { prefx: 'a' } as RedisStoreOptions)).toThrow(
      /^redisStore.prefx: no such option; there are prefix, subscriber$/,
    )
    expect(() => redisStore(client, null as unknown as RedisStoreOptions)).toThrow(
      /^redisStore: null is not an object with prefix, subscriber$/,
    )
  })
})

it('touches no key but those that it declares: an account that may use no other serves (spring-cloud-gateway#248)', async () => {
  await eye.call('ACL', 'SETUSER', 'limiter', 'on', '>secret', 'resetkeys', '~only:*', '+@all', '-@dangerous', '+info')
  await expectToCount(make('ioredis 5', { username: 'limiter', password: 'secret' }), { prefix: 'only' })
})
