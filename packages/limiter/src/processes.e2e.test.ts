import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../test/fresh-build.ts'
import { type RedisServer, startRedis } from '../../../test/redis.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createLimiter } from './limiter.ts'
import { memoryStore } from './stores/memory.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PROCESSES = 4
const CALLS = 250

/** Waits for a line on its input, asks for everything at once, and prints how many were admitted. */
const PROGRAM = `
import { once } from 'node:events'
import { createLimiter, fixedWindow, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-5'
const client = new Redis(process.env.REDIS_URL, { lazyConnect: true })
const store = redisStore(client)
const limit = process.env.ALGORITHM === 'bucket'
  ? tokenBucket({ limit: 5, period: process.env.PERIOD })
  : fixedWindow({ limit: 5, period: process.env.PERIOD, align: 'first-hit' })
const limiter = createLimiter({ name: process.env.ALGORITHM, store, limit, timeoutMs: 30000 })
await limiter.peek('')
console.log('ready')
await once(process.stdin, 'data')
const decisions = await Promise.all(Array.from({ length: ${CALLS} }, () => limiter.check('')))
const sources = [...new Set(decisions.map(({ source }) => source))]
console.log(JSON.stringify({ allowed: decisions.filter(({ allowed }) => allowed).length, sources }))
await limiter.close()
await store.close()
process.stdin.destroy()
`

let server: RedisServer | undefined
const children: ChildProcess[] = []

beforeAll(async () => {
  assertFreshBuild()
  server = await startRedis()
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

afterAll(() => server?.stop())

interface Instance {
  go(): void
  readonly lines: AsyncIterator<string>
  readonly exit: Promise<unknown>
}

async function startInstance(env: Record<string, string>): Promise<Instance> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, REDIS_URL: server?.url, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('ready')
  return { go: () => child.stdin.write('go\n'), lines, exit }
}

describe('one budget', () => {
  it.each([
    ['bucket', '1h'],
    ['window', '60s'],
  ])(
    'admits exactly 5 of 1,000 concurrent calls from four processes: %s of %s (nestjs/throttler#1303)',
    async (algorithm, period) => {
      await server?.command('FLUSHALL')
      const env = { ALGORITHM: algorithm, PERIOD: period }
      const instances = await Promise.all(Array.from({ length: PROCESSES }, () => startInstance(env)))
      for (const instance of instances) instance.go()
      const answers = await Promise.all(instances.map(async ({ lines }) => JSON.parse((await lines.next()).value)))
      expect(answers.map(({ sources }) => sources)).toEqual(Array(PROCESSES).fill(['store']))
      expect(answers.reduce((sum, { allowed }) => sum + allowed, 0)).toBe(5)
      // Nothing of the library's keeps a process alive once store and limiter are closed.
      await Promise.all(instances.map(({ exit }) => exit))
    },
  )

  it('admits exactly 5 of 1,000 concurrent calls in memory, with waits in between (apache/apisix#3988)', async () => {
    for (const limit of [
      tokenBucket({ limit: 5, period: '1h' }),
      fixedWindow({ limit: 5, period: '1h', align: 'first-hit' }),
    ]) {
      const limiter = createLimiter({ name: 'one', store: memoryStore(), limit })
      const calls = Array.from({ length: 1000 }, async (_, i) => {
        await sleep(i % 5)
        const decision = await limiter.check('')
        await sleep(i % 3)
        return decision
      })
      const decisions = await Promise.all(calls)
      expect(decisions.filter(({ allowed }) => allowed).length).toBe(5)
      await limiter.close()
    }
  })
})
