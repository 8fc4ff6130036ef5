import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, type Engine, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { afterEach, describe, expect, it } from 'vitest'
import { startFakeRedis } from '../../../../../test/fake-redis.ts'
import { AMPLE, until } from '../../../../../test/load.ts'
import { type RedisServer, startRedis } from '../../../../../test/redis.ts'
import { ALL_CLIENTS, CLIENTS, type TestClient } from '../../../../../test/redis-clients.ts'
import { startProxy } from '../../../../../test/tcp-proxy.ts'

const ioredis = CLIENTS[1] as TestClient
const ends: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function server(...args: string[]): Promise<RedisServer> {
  const redis = await startRedis(args)
  ends.push(() => redis.stop())
  return redis
}

interface Seen {
  readonly engine: Engine
  readonly kinds: string[]
  ask(key?: string): ReturnType<Engine['check']>
}

function engineOn(url: string, { make }: TestClient = ioredis): Seen {
  const store = redisStore(make(url))
  const engine = createEngine({ store, timeoutMs: 500 })
  ends.push(
    () => store.close(),
    () => engine.close(),
  )
  const kinds: string[] = []
  engine.on('error', ({ kind }) => kinds.push(kind))
  const ask = (key = 'k') => engine.check([{ rule: 'r', name: 'l', limit: AMPLE, key }])
  return { engine, kinds, ask }
}

/** Refused: decided here, told by its kind. Back: decided by the store. */
async function refusesAndReturns(
  { ask, kinds }: Seen,
  kind: string,
  refuse: () => Promise<unknown>,
  allow: () => Promise<unknown>,
): Promise<void> {
  await backBy(ask, 5000)
  await refuse()
  const decision = await ask()
  expect(decision).toMatchObject({ allowed: true, source: 'local', degraded: true })
  for (let i = 0; i < 10; i++) expect((await ask()).source).toBe('local')
  await until(`an error of kind ${kind}`, () => kinds.length > 0)
  expect(new Set(kinds)).toEqual(new Set([kind]))
  await allow()
  await backBy(ask, 5000)
}

function backBy(ask: Seen['ask'], limitMs: number): Promise<void> {
  return until('a decision of the store', async () => (await ask()).source === 'store', limitMs)
}

describe('What Redis refuses', () => {
  it('READONLY: a server that became a replica is left, and served again once it is not (redis/ioredis#1089)', async () => {
    const redis = await server()
    const seen = engineOn(redis.url)
    await refusesAndReturns(
      seen,
      'readonly',
      () => redis.command('REPLICAOF', '127.0.0.1', '1'),
      () => redis.command('REPLICAOF', 'NO', 'ONE'),
    )
  })

  it.each(CLIENTS)(
    'READONLY: the address of another server is looked up again, by $name (redis/go-redis#2229)',
    async (client) => {
      const former = await server()
      const next = await server('--replicaof', '127.0.0.1', `${former.port}`)
      const proxy = await startProxy(former.port)
      ends.push(() => proxy.close())
      const seen = engineOn(`redis://127.0.0.1:${proxy.port}`, client)
      await backBy(seen.ask, 5000)
      proxy.redirect(next.port)
      await next.command('REPLICAOF', 'NO', 'ONE')
      await former.command('REPLICAOF', '127.0.0.1', `${next.port}`)
      expect((await seen.ask()).source).toBe('local')
      await backBy(seen.ask, 1500)
      expect(new Set(seen.kinds)).toEqual(new Set(['readonly']))
      expect(await former.command('INFO', 'clients')).toContain('connected_clients:1')
    },
  )

  it('OOM: a full server decides nothing by halves, and the kind says that it is full (redis/redis#8623)', async () => {
    const redis = await server('--maxmemory-policy', 'noeviction')
    const seen = engineOn(redis.url)
    const limit = tokenBucket({ limit: 100, period: '1h' })
    const two = (key: string) => seen.engine.check(['a', 'b', 'c'].map((name) => ({ rule: 'two', name, limit, key })))
    await backBy(() => two('before'), 5000)
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    const without = await Promise.all(Array.from({ length: 50 }, (_, i) => two(`full${i}`)))
    expect(without.every(({ allowed, source }) => allowed && source === 'local')).toBe(true)
    await until('an error', () => seen.kinds.length > 0)
    expect(seen.kinds).toEqual(['full'])
    // Nothing of any check was kept, and what had been kept has its expiry.
    const keys = await redis.command('EVAL', "return table.concat(redis.call('KEYS', '*full*'), ' ')", '0')
    expect(keys).toBe('$0')
    expect(Number((await redis.command('PTTL', 'rate_limit:two:a:before')).slice(1))).toBeGreaterThan(0)
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await backBy(() => two('after'), 5000)
  })

  it('NOPERM: a user without the right to run scripts, or to touch the keys', async () => {
    const redis = await server()
    await redis.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~*', '&*', '+@all')
    const url = redis.url.replace('redis://', 'redis://limiter:secret@')
    const seen = engineOn(url)
    await refusesAndReturns(
      seen,
      'permission',
      () => redis.command('ACL', 'SETUSER', 'limiter', '-evalsha'),
      () => redis.command('ACL', 'SETUSER', 'limiter', '+evalsha'),
    )
    const keys = engineOn(url)
    await refusesAndReturns(
      keys,
      'permission',
      () => redis.command('ACL', 'SETUSER', 'limiter', 'resetkeys', '~other:*'),
      () => redis.command('ACL', 'SETUSER', 'limiter', 'resetkeys', '~rate_limit:*'),
    )
    const commands = engineOn(url)
    await refusesAndReturns(
      commands,
      'permission',
      () => redis.command('ACL', 'SETUSER', 'limiter', '-set'),
      () => redis.command('ACL', 'SETUSER', 'limiter', '+set'),
    )
  })

  it('works for a user that may do no more than it needs', async () => {
    const redis = await server()
    const needs = '-@all +@connection +time +mget +set +pexpire +del +script|load +evalsha +eval +info'.split(' ')
    await redis.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~rate_limit:*', ...needs)
    for (const client of ALL_CLIENTS) {
      const seen = engineOn(redis.url.replace('redis://', 'redis://limiter:secret@'), client)
      await backBy(seen.ask, 5000)
      await seen.engine.reset([{ rule: 'r', name: 'l', limit: AMPLE, key: 'k' }])
    }
  })

  it('NOAUTH and WRONGPASS: a password set or changed behind an open connection', async () => {
    const redis = await server()
    await redis.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~*', '+@all')
    const seen = engineOn(redis.url.replace('redis://', 'redis://limiter:secret@'))
    // Deleting the user cuts its connections; with the next it is refused.
    await backBy(seen.ask, 5000)
    await redis.command('ACL', 'DELUSER', 'limiter')
    await until('a decision without the store', async () => (await seen.ask()).source === 'local')
    await redis.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~*', '+@all')
    await backBy(seen.ask, 5000)
  })

  it.each(ALL_CLIENTS)('WRONGPASS and NOAUTH at the start, by $name', async (client) => {
    const redis = await server('--requirepass', 'secret')
    const wrong = engineOn(redis.url.replace('redis://', 'redis://:wrong@'), client)
    const none = engineOn(redis.url, client)
    for (const { ask, kinds } of [wrong, none]) {
      for (let i = 0; i < 20; i++) {
        expect((await ask()).source).toBe('local')
        await sleep(10)
      }
      await until('an error', () => kinds.length > 0)
      expect(kinds).toEqual(['auth'])
    }
  })

  it('MISCONF: a server that cannot save its data takes no more', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-misconf-'))
    ends.push(async () => rmSync(folder, { recursive: true, force: true }))
    const redis = await server('--dir', folder)
    // A folder where the file should be makes every save fail.
    mkdirSync(join(folder, 'dump.rdb', 'in-the-way'), { recursive: true })
    const seen = engineOn(redis.url)
    await refusesAndReturns(
      seen,
      'readonly',
      async () => {
        await redis.command('CONFIG', 'SET', 'save', '3600 1')
        await redis.command('BGSAVE')
        await until('a save that failed', async () =>
          (await redis.command('INFO', 'persistence')).includes('rdb_last_bgsave_status:err'),
        )
      },
      () => redis.command('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no'),
    )
  })

  it('NOREPLICAS: a server that lost the replicas it must have', async () => {
    const redis = await server()
    const seen = engineOn(redis.url)
    await refusesAndReturns(
      seen,
      'readonly',
      () => redis.command('CONFIG', 'SET', 'min-replicas-to-write', '1'),
      () => redis.command('CONFIG', 'SET', 'min-replicas-to-write', '0'),
    )
  })

  it("BUSY: another's script that does not end, until it is killed", async () => {
    const redis = await server('--busy-reply-threshold', '20')
    const seen = engineOn(redis.url)
    await backBy(seen.ask, 5000)
    const running = redis.command('EVAL', 'while true do end', '0').catch(() => '')
    await sleep(100)
    for (let i = 0; i < 10; i++) expect((await seen.ask()).source).toBe('local')
    await until('an error', () => seen.kinds.length > 0)
    expect(seen.kinds).toContain('busy')
    await redis.command('SCRIPT', 'KILL')
    await running
    await backBy(seen.ask, 5000)
  })

  it('max number of clients: no room for a connection', async () => {
    const redis = await server()
    expect(await redis.command('CONFIG', 'SET', 'maxclients', '1')).toBe('+OK')
    const first = engineOn(redis.url)
    await backBy(first.ask, 5000)
    const seen = engineOn(redis.url)
    for (let i = 0; i < 5; i++) expect((await seen.ask()).source).toBe('local')
    await until('an error', () => seen.kinds.length > 0)
    expect(seen.kinds).toEqual(['connection'])
    await first.engine.close()
    await ends.splice(-4, 1)[0]?.()
    await backBy(seen.ask, 5000)
  })
})

describe.each(ALL_CLIENTS)('What a server answers to $name', (client) => {
  const text = (code: string) => `-ERR Error running script (call to f_4f7e): @user_script:2: -${code} of a script\r\n`

  it.each([
    ['-LOADING Redis is loading the dataset in memory\r\n', 'loading'],
    ["-READONLY You can't write against a read only replica.\r\n", 'readonly'],
    ["-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n", 'readonly'],
    ["-OOM command not allowed when used memory > 'maxmemory'.\r\n", 'full'],
    ['-NOAUTH Authentication required.\r\n', 'auth'],
    ['-UNKILLABLE Sorry the script already executed write commands.\r\n', 'busy'],
    [text('READONLY'), 'readonly'],
    [text('MASTERDOWN'), 'readonly'],
    [text('LOADING'), 'loading'],
    [text('CLUSTERDOWN'), 'cluster'],
    [text('OOM'), 'full'],
    ["-CROSSSLOT Keys in request don't hash to the same slot\r\n", 'cluster'],
    ['-CLUSTERDOWN The cluster is down\r\n', 'cluster'],
    ['-MOVED 3999 127.0.0.1:6381\r\n', 'cluster'],
    ['-TRYAGAIN Multiple keys request during rehashing of slot\r\n', 'cluster'],
    ['-ERR something new\r\n', 'other'],
    ['+OK\r\n', 'script'],
    ['*3\r\n:0\r\n:1\r\n:0\r\n', 'script'],
    ['$-1\r\n', 'script'],
  ])(
    '%j is a fault of the store, never a refusal of the caller (firecrawl/firecrawl#3728, StackExchange.Redis#2074)',
    async (reply, kind) => {
      const fake = await startFakeRedis()
      ends.push(() => fake.close())
      const seen = engineOn(fake.url, client)
      await backBy(seen.ask, 5000)
      fake.reply = ([command]) => (command === 'EVALSHA' ? reply : undefined)
      for (let i = 0; i < 10; i++) {
        expect(await seen.ask()).toMatchObject({ allowed: true, source: 'local', degraded: true, retryAfterMs: 0 })
      }
      await until('an error', () => seen.kinds.length > 0)
      expect(seen.kinds).toEqual([kind])
      fake.reply = () => undefined
      await backBy(seen.ask, 5000)
    },
  )

  it('is asked again, and again, while it loads its data', async () => {
    const fake = await startFakeRedis()
    ends.push(() => fake.close())
    fake.reply = ([command]) =>
      ['SCRIPT', 'EVALSHA'].includes(command as string)
        ? '-LOADING Redis is loading the dataset in memory\r\n'
        : command?.toUpperCase() === 'INFO'
          ? '$30\r\nloading:1\r\nloading_eta_seconds\r\n'
          : undefined
    const seen = engineOn(fake.url, client)
    for (let i = 0; i < 20; i++) {
      expect((await seen.ask()).source).toBe('local')
      await sleep(10)
    }
    fake.reply = () => undefined
    await backBy(seen.ask, 5000)
  })

  it('garbage instead of the protocol ends the connection, and nothing else', async () => {
    const fake = await startFakeRedis()
    ends.push(() => fake.close())
    const seen = engineOn(fake.url, client)
    await backBy(seen.ask, 5000)
    fake.reply = () => 'HTTP/1.1 400 Bad Request\r\n\r\n'
    for (let i = 0; i < 20; i++) {
      expect((await seen.ask()).source).toBe('local')
      await sleep(10)
    }
    fake.reply = () => undefined
    await backBy(seen.ask, 5000)
  })
})

it.each(CLIENTS)('LOADING: a server that starts with much data, by $name', async (client) => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-loading-'))
  ends.push(async () => rmSync(folder, { recursive: true, force: true }))
  const redis = await server('--dir', folder)
  await redis.command('EVAL', "for i = 1, 1500 do redis.call('SET', 'x' .. i, ('x'):rep(100)) end", '0')
  await redis.command('SAVE')
  const seen = engineOn(redis.url, client)
  await backBy(seen.ask, 5000)
  await redis.kill()
  await redis.start('--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024')
  expect(await redis.command('GET', 'x1')).toContain('LOADING')
  while ((await redis.command('GET', 'x1')).includes('LOADING')) {
    expect(await seen.ask()).toMatchObject({ allowed: true, source: 'local', degraded: true })
    await sleep(20)
  }
  await backBy(seen.ask, 1500)
  expect(seen.kinds.every((kind) => ['connection', 'loading'].includes(kind))).toBe(true)
})

describe('A budget that was used up in Redis', () => {
  it('is not a fresh one each time the store refuses', async () => {
    const redis = await server()
    const { engine } = engineOn(redis.url)
    const item = { rule: 'r', name: 'five', limit: tokenBucket({ limit: 5, period: '1h' }), key: 'k' }
    await backBy(() => engine.peek([item]), 5000)
    let admitted = 0
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 20; i++) if ((await engine.check([item])).allowed) admitted += 1
      await redis.command('REPLICAOF', '127.0.0.1', '1')
      for (let i = 0; i < 20; i++) if ((await engine.check([item])).allowed) admitted += 1
      await redis.command('REPLICAOF', 'NO', 'ONE')
      await backBy(() => engine.peek([item]), 5000)
    }
    expect(admitted).toBeLessThanOrEqual(10)
  })
})
