import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis-5'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../../test/redis.ts'
import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import { createEngine } from '../engine.ts'
import { type CheckItem, MAX_PARTS } from '../part.ts'
import type { Check, Part } from '../store.ts'
import { Batch } from '../stores/redis/batch.ts'
import { redisStore } from '../stores/redis/index.ts'
import { DECIDE_TEST_LUA, DECIDE_TEST_SHA1 } from '../testing/decide-test.generated.ts'
import { DECIDE_LUA, DECIDE_SHA1 } from './decide.generated.ts'

let server: RedisServer
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

beforeEach(async () => {
  await redis.flushall()
})

const limit = tokenBucket({ limit: 5, period: '1h' })
const nothing = () => undefined

function partOf(value: string, cost = 1): Part {
  return { name: 'limit', limit, space: 'raw:', value, cost, onStoreFailure: 'local' }
}

function batchOf(...checks: Check[]): Batch {
  const batch = new Batch({ prefix: 'decide:' })
  for (const check of checks) batch.add({ check, deadlineMs: 0, settled: false, answer: nothing, fail: nothing })
  return batch
}

const judge = (batch: Batch, staleUs: number, nowUs: number) =>
  redis.eval(DECIDE_TEST_LUA, batch.keys.length, ...batch.keys, batch.encode(staleUs, nowUs), `${nowUs}`)

describe('the script', () => {
  it('is read by Redis in both builds, under the names that they are called by', async () => {
    expect(await redis.script('LOAD', DECIDE_LUA)).toBe(DECIDE_SHA1)
    expect(await redis.script('LOAD', DECIDE_TEST_LUA)).toBe(DECIDE_TEST_SHA1)
  })

  it('is the file that is published, and the build for tests differs in its clock alone', () => {
    expect(readFileSync(new URL('decide.generated.lua', import.meta.url), 'utf8')).toBe(DECIDE_LUA)
    const [real, test] = [DECIDE_LUA.split('\n'), DECIDE_TEST_LUA.split('\n')]
    expect(real.filter((line) => !test.includes(line))).toEqual([
      "local time = redis.call('TIME')",
      'local now = time[1] * 1000000 + time[2]',
      'local KEEP_MS = 1',
    ])
    expect(test.filter((line) => !real.includes(line))).toEqual([
      'local now = tonumber(ARGV[2])',
      'local KEEP_MS = 1000000000',
    ])
  })

  it('builds no key, and no text from a number', () => {
    expect(DECIDE_LUA).not.toMatch(/tostring|tonumber|KEYS\[\w+\]\s*\.\.|\.\.\s*(?:KEYS|call|now)|[0-9]\s*\.\./)
    // What is joined is packed bytes, lists of them, or what was stored.
    const joined = DECIDE_LUA.split('\n').filter((line) => line.includes('..'))
    const packed =
      /struct\.pack|pack_numbers|string\.(?:sub|rep)|list \.\. entry|text_of\(|write\(state|state\[6\] \.\. state\[8\]/
    for (const line of joined) expect(line).toMatch(packed)
    const calls = [...DECIDE_LUA.matchAll(/\bp?call\('(\w+)'(?:, ([^,)]*))?/g)].map(([, ...call]) => call)
    expect(calls).toEqual([
      ['TIME', undefined],
      ['MGET', 'unpack(KEYS'],
      ['DEL', 'KEYS[key]'],
      ['SET', 'KEYS[key]'],
      ['SET', 'KEYS[key]'],
      ['SET', 'KEYS[key]'],
      ['PEXPIRE', 'KEYS[key]'],
    ])
  })

  it('writes nothing when it runs after its instant: no charge, no repair, no expiry', async () => {
    await redis.rpush('decide:raw:list', 'x')
    await redis.set('decide:raw:garbage', 'x')
    await judge(batchOf({ parts: [partOf('used', 5)], peek: false }), 1e15, 1e15)
    await redis.persist('decide:raw:used')
    const before = await redis.getBuffer('decide:raw:used')
    const values = ['new', 'list', 'garbage', 'used']
    const late = batchOf(...values.map((value) => ({ parts: [partOf(value)], peek: false })))
    expect(await judge(late, 2e15 - 1, 2e15)).toEqual([1, 2e15])
    expect((await redis.keys('*')).sort()).toEqual(['decide:raw:garbage', 'decide:raw:list', 'decide:raw:used'])
    expect([await redis.type('decide:raw:list'), await redis.get('decide:raw:garbage')]).toEqual(['list', 'x'])
    expect([await redis.getBuffer('decide:raw:used'), await redis.pttl('decide:raw:used')]).toEqual([before, -1])
    expect(await judge(late, 2e15, 2e15)).toEqual([0, 2e15, 2, ...values.flatMap(() => [1, 720_000_000])])
  })

  it('takes its own time, in µs since 1970', async () => {
    const batch = batchOf({ parts: [partOf('ann')], peek: false })
    const [, before] = (await redis.eval(
      DECIDE_LUA,
      1,
      ...batch.keys,
      batch.encode(Number.MAX_SAFE_INTEGER, 0),
    )) as number[]
    const [seconds, micros] = (await redis.time()) as unknown as [string, string]
    const after = Number(seconds) * 1_000_000 + Number(micros)
    expect(after - (before as number)).toBeGreaterThanOrEqual(0)
    expect(after - (before as number)).toBeLessThan(5_000_000)
  })
})

describe('batches', () => {
  it('judge a check of as many limits as one may have, among others', async () => {
    const store = redisStore(redis, { prefix: 'many' })
    const engine = createEngine({ store, timeoutMs: 30_000 })
    const limits = [
      limit,
      fixedWindow({ limit: 5, period: '1h', align: 'first-hit' }),
      tokenBucket({ limit: 9, period: '1d' }),
    ]
    const wide = Array.from({ length: MAX_PARTS }, (_, i): CheckItem => {
      return { name: 'limit', limit: limits[i % 3]!, key: `key${i}` }
    })
    const narrow = (i: number) => engine.check([wide[i] as CheckItem])
    const [first, ...others] = await Promise.all([
      engine.check(wide),
      ...Array.from({ length: 300 }, (_, i) => narrow(i)),
    ])
    expect([first.allowed, first.limits.length, first.source]).toEqual([true, MAX_PARTS, 'store'])
    expect(others.every(({ allowed, limits: [only] }, i) => allowed && only?.remaining === (i % 3 === 2 ? 7 : 3))).toBe(
      true,
    )
    await engine.close()
    await store.close()
  })

  it('of any size give what one by one would: 3,000 checks of a tick, a few hot keys', async () => {
    const store = redisStore(redis, { prefix: 'tick' })
    const engine = createEngine({ store, timeoutMs: 30_000 })
    const bucket = tokenBucket({ limit: 400, period: '365d' })
    const window = fixedWindow({ limit: 150, period: '365d' })
    const calls = Array.from({ length: 3000 }, (_, i) =>
      engine.check([
        { name: 'hot', limit: bucket, key: `${i % 3}` },
        { name: 'shared', limit: window, key: `${i % 7}`, cost: 1 + (i % 2) },
      ]),
    )
    const decisions = await Promise.all(calls)
    const used = new Map<string, number>()
    for (const [i, { allowed, limits }] of decisions.entries()) {
      const [hot, shared] = [used.get(`h${i % 3}`) ?? 0, used.get(`s${i % 7}`) ?? 0]
      const fits = hot + 1 <= 400 && shared + 1 + (i % 2) <= 150
      expect(allowed).toBe(fits)
      if (fits) used.set(`h${i % 3}`, hot + 1).set(`s${i % 7}`, shared + 1 + (i % 2))
      expect(limits[1]?.remaining).toBe(150 - (used.get(`s${i % 7}`) ?? 0))
    }
    await engine.close()
    await store.close()
  })
})
