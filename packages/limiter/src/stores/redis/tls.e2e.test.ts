import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GlideClient } from '@valkey/valkey-glide'
import { createEngine, fixedWindow } from 'headgate'
import { type RedisClient, redisStore } from 'headgate/redis'
import { Redis as Ioredis5 } from 'ioredis-5'
import { Redis as Ioredis6 } from 'ioredis-6'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient as createClient5 } from 'redis-5'
import { createClient as createClient6 } from 'redis-6'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, type RedisServer, startRedis } from '../../../../../test/redis.ts'

const item = { rule: 'r', name: 'l', limit: fixedWindow({ limit: 5, period: '1h' }), key: 'k' }
const folder = mkdtempSync(join(tmpdir(), 'headgate-tls-'))
let server: RedisServer
let port: number
let ca: Buffer
const ends: (() => unknown)[] = []

beforeAll(async () => {
  authority()
  ca = readFileSync(join(folder, 'ca.crt'))
  port = await freePort()
  const tls = ['--tls-port', `${port}`, '--tls-auth-clients', 'no', '--tls-ca-cert-file', join(folder, 'ca.crt')]
  const own = ['--tls-cert-file', join(folder, 'server.crt'), '--tls-key-file', join(folder, 'server.key')]
  server = await startRedis([...tls, ...own])
  // No more than documented, and only its own keys.
  const rights =
    '-@all +@connection +time +mget +set +pexpire +del +script|load +evalsha +eval +publish +subscribe +unsubscribe'.split(
      ' ',
    )
  await server.command('ACL', 'SETUSER', 'headgate', 'on', '>secret', '~rate_limit:*', '&rate_limit:*', ...rights)
  await server.command('ACL', 'SETUSER', 'glide', 'on', '>secret', '~rate_limit:*', '&rate_limit:*', ...rights, '+info')
})

afterAll(async () => {
  for (const end of ends.reverse()) await end()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** An authority that nobody knows, and a certificate for 127.0.0.1 by it. */
function authority(): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  openssl(...request, '-subj', '/CN=test authority', '-keyout', 'ca.key', '-out', 'ca.crt')
  const names = [
    '-addext',
    'subjectAltName=IP:127.0.0.1,DNS:localhost',
    '-addext',
    'basicConstraints=critical,CA:FALSE',
  ]
  const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-subj', '/CN=127.0.0.1']
  openssl(...request, ...by, ...names, '-keyout', 'server.key', '-out', 'server.crt')
}

const login = { username: 'headgate', password: 'secret' }
const ioredis = () => ({ ...login, port, db: 3, tls: { ca }, lazyConnect: true })
const nodeRedis = () => ({ ...login, database: 3, socket: { host: '127.0.0.1', port, tls: true as const, ca } })

const clients: Record<string, () => RedisClient | Promise<RedisClient>> = {
  'ioredis 5': () => new Ioredis5(ioredis()),
  'ioredis 6': () => new Ioredis6(ioredis()),
  iovalkey: () => new Iovalkey(ioredis()),
  'node-redis 5': () => createClient5(nodeRedis()),
  'node-redis 6': () => createClient6(nodeRedis()),
  'Valkey GLIDE': async () => {
    const client = await GlideClient.createClient({
      addresses: [{ host: '127.0.0.1', port }],
      credentials: { username: 'glide', password: 'secret' },
      databaseId: 3,
      useTLS: true,
      lazyConnect: true,
      advancedConfiguration: { tlsAdvancedConfiguration: { rootCertificates: ca } },
    })
    ends.push(() => client.close())
    return client
  },
}

it.each(Object.keys(clients))(
  '%s counts over TLS by an authority of its own, as a user with the documented rights, in its database',
  async (name) => {
    await server.command('EVAL', "redis.call('SELECT', 3) redis.call('FLUSHDB')", '0')
    const store = redisStore((await clients[name]?.()) as RedisClient)
    const engine = createEngine({ store, timeoutMs: 5000 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const decisions = await Promise.all(Array.from({ length: 6 }, () => engine.check([item])))
    expect(decisions.map(({ source, allowed }) => [source, allowed])).toEqual(
      [true, true, true, true, true, false].map((allowed) => ['store', allowed]),
    )
    expect(await server.command('EVAL', "redis.call('SELECT', 3) return redis.call('DBSIZE')", '0')).toBe(':1')
    expect(await server.command('DBSIZE')).toBe(':0')
  },
)

it('A certificate that nobody vouches for is a store that is away, and is told', async () => {
  const store = redisStore(new Ioredis6({ ...ioredis(), tls: {} }))
  const engine = createEngine({ store, timeoutMs: 1000 })
  const error = await engine.check([{ ...item, onStoreFailure: 'throw' }]).catch((error: unknown) => error)
  expect(error).toMatchObject({ code: 'HEADGATE_STORE_UNAVAILABLE', cause: { kind: 'connection' } })
  expect(`${(error as Error & { cause: Error }).cause.message}`).toMatch(/certificate/)
  await engine.close()
  await store.close()
})
