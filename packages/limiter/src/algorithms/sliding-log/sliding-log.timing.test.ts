import { createEngine, type Limit, slidingLog } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-5'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../../../test/redis.ts'
import { partsOf } from '../../part.ts'
import { writeReceipt } from '../../receipt.ts'
import { slidingLogCodec } from './index.ts'
import { newLog } from './step.ts'

const CALLS = 300
const HOUR_US = 3_600_000_000

let server: RedisServer
let redis: Redis

beforeAll(async () => {
  server = await startRedis(['--slowlog-log-slower-than', '0', '--slowlog-max-len', '2000'])
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

/** A log of 10,000 runs, whose newest is of `newestUs` and whose others lie `apartUs` from each other. */
async function plant(apartUs: number, newestUs: number): Promise<readonly number[]> {
  const log = newLog(HOUR_US)
  for (let i = 0; i < 10_000; i++) {
    log.instants.push(newestUs - (9999 - i) * apartUs)
    log.totals.push(i + 1)
  }
  await redis.set('timing:log:k', slidingLogCodec.encode(log), 'PX', 3_600_000)
  return log.instants
}

async function nowUs(): Promise<number> {
  const [seconds, us] = (await redis.time()) as unknown as [string, string]
  return Number(seconds) * 1e6 + Number(us)
}

/** What the calls of the script took in the server, in µs, ascending. */
async function scriptTimes(): Promise<number[]> {
  const entries = (await redis.call('SLOWLOG', 'GET', '2000')) as [number, number, number, string[]][]
  return entries
    .filter(([, , , [command]]) => command?.toUpperCase() === 'EVALSHA')
    .map(([, , us]) => us)
    .sort((a, b) => a - b)
}

describe('One call of the script on a log of 10,000 runs takes at most about 1 ms (go-redis/redis_rate#30)', () => {
  const limit = slidingLog({ limit: 10_000, period: '1h' })

  it.each([
    ['refused', 1000, 300_000, async (engine, _instants, one) => void (await engine.check(one(1)))],
    [
      'admitted, with one run that has lapsed',
      1000,
      360_050,
      async (engine, _instants, one) => void (await engine.check(one(1))),
    ],
    [
      'admitted, with half of the runs lapsed',
      1000,
      720_000,
      async (engine, _instants, one) => void (await engine.check(one(1))),
    ],
    [
      // The worst there is: 5,000 totals change.
      'given back to a run in the middle',
      4000,
      300_000,
      async (engine, instants, one) => {
        const at = instants[5000] as number
        const charge = { cost: 1, chargedUs: at, instantUs: at + HOUR_US }
        await engine.refund(one(1), { receipt: writeReceipt('store', partsOf(one(1)), [charge]) })
      },
    ],
    ['only asked', 1000, 300_000, async (engine, _instants, one) => void (await engine.peek(one(1)))],
  ] as const satisfies [
    string,
    number,
    number,
    (engine: Engine, instants: readonly number[], one: Items) => Promise<void>,
  ][])('%s', async (name, mostUs, apartUs, call) => {
    const store = redisStore(redis, { prefix: 'timing' })
    const engine = createEngine({ store, timeoutMs: 10_000, denyCache: false })
    try {
      await engine.peek([{ name: 'log', limit, key: 'unseen' }])
      await redis.call('SLOWLOG', 'RESET')
      for (let i = 0; i < CALLS; i++) {
        const instants = await plant(apartUs, await nowUs())
        await call(engine, instants, (cost) => [{ name: 'log', limit, key: 'k', cost }])
      }
      const times = await scriptTimes()
      expect(times.length).toBeGreaterThan(CALLS / 2)
      const at = (part: number) => times[Math.floor(times.length * part)] as number
      console.info(`sliding log, 10,000 runs, ${name}: median ${at(0.5)} µs, 99 % ${at(0.99)} µs of the server's time`)
      expect(at(0.5)).toBeLessThan(mostUs)
    } finally {
      await engine.close()
      await store.close()
    }
  })
})

type Engine = ReturnType<typeof createEngine>
type Items = (cost: number) => { name: string; limit: Limit; key: string; cost: number }[]
