// What one call of the script costs the server at worst: the longest states that are allowed, by SLOWLOG.
import { concurrency, createLimiter, slidingLog, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { statement } from '../common/lines.mjs'
import { percentile, spread } from '../common/numbers.mjs'

const NAME = 'worst'
const MOST = 10_000
/** So many ids of holds stand under one key at most (docs/reference/operations.md). */
const HOLDS = 4096

/** State → how it is made full through the public API, and the calls that are timed on it. */
const states = {
  'sliding log, 10,000 runs': {
    limit: slidingLog({ limit: MOST, period: '1h' }),
    async fill(limiter) {
      // One after the other: what is charged in one call of the script is one run.
      const receipts = []
      for (let i = 0; i < MOST; i++) receipts.push((await limiter.check('k')).receipt)
      return receipts[MOST / 2]
    },
    calls: {
      refused: { call: (limiter) => limiter.check('k') },
      'admitted, the last that fits': {
        before: (limiter) => limiter.refund('k'),
        call: (limiter) => limiter.check('k'),
      },
      'given back in the middle': { call: (limiter, receipt) => limiter.refund('k', { receipt }) },
    },
  },
  'token bucket, 4,096 holds': {
    limit: tokenBucket({ limit: 1_000_000, period: '1h' }),
    async fill(limiter) {
      for (let i = 0; i < HOLDS; i++) await limiter.reserve('k', { id: `${i}`, holdMs: 3_600_000 })
      return limiter.reservation('k', `${HOLDS / 2}`)
    },
    calls: {
      checked: { call: (limiter) => limiter.check('k') },
      'one more hold, refused': { call: (limiter) => limiter.reserve('k', { id: 'more', holdMs: 3_600_000 }) },
      'committed in the middle': { call: (_, reservation) => reservation.commit(1) },
    },
  },
  'concurrency, 10,000 slots held': {
    limit: concurrency({ limit: MOST, ttl: '1h' }),
    async fill(limiter) {
      const held = []
      for (let i = 0; i < MOST; i++) held.push(await limiter.check('k'))
      // A decision gives back once; so each call takes the next one, about the middle.
      return held.slice(MOST / 4).values()
    },
    calls: {
      refused: { call: (limiter) => limiter.check('k') },
      renewed: { call: (_, held) => held.next().value.renew() },
      released: { call: (_, held) => held.next().value.release() },
    },
  },
}

export async function worst(bench) {
  const { client } = bench.redis
  await client.config('SET', 'slowlog-max-len', '100000')
  const runs = {}
  const lines = []
  for (const [state, about] of Object.entries(states)) {
    bench.progress(`worst cases: filling a ${state}`)
    for (const [call, times] of Object.entries(await timed(bench, state, about))) {
      const work = `${state}: ${call}`
      runs[work] = times
      for (const [index, measure] of ['median', 'p99', 'max'].entries()) {
        const value = spread(times.map((run) => run.ms[index]))
        const about = { work, measure: `server's time of one call, ms: ${measure}`, digits: 3, atMost: 1 }
        lines.push(statement(about, { own: value, value, runs: [] }))
      }
    }
  }
  await client.config('SET', 'slowlog-log-slower-than', '10000')
  return { runs, lines }
}

/** Calls in turns, as often as there are rounds; before each call the key holds the same full state again. */
async function timed(bench, state, { limit, fill, calls }) {
  const { client } = bench.redis
  await bench.redis.flush()
  const store = redisStore(client)
  const limiter = createLimiter({ name: NAME, store, limit, timeoutMs: 10_000 })
  const runs = Object.fromEntries(Object.keys(calls).map((name) => [name, []]))
  try {
    const kept = await fill(limiter)
    const key = `rate_limit:${NAME}:k`
    const full = await client.getBuffer(key)
    for (let round = 1; round <= bench.rounds; round++) {
      for (const [name, { before, call }] of Object.entries(calls)) {
        bench.progress(`worst cases: ${state}: round ${round} of ${bench.rounds}, ${name}`)
        const restore = async () => {
          await client.set(key, full, 'PX', 3_600_000)
          await before?.(limiter)
        }
        runs[name].push(await serverTimes(client, restore, () => call(limiter, kept), bench.quick ? 50 : 300))
      }
    }
  } finally {
    await limiter.close()
    await store.close()
  }
  return runs
}

async function serverTimes(client, restore, call, times) {
  const taken = []
  for (let i = 0; i < times; i++) {
    await client.config('SET', 'slowlog-log-slower-than', '-1')
    await restore()
    await client.slowlog('RESET')
    await client.config('SET', 'slowlog-log-slower-than', '0')
    await call()
    const entries = await client.slowlog('GET', '-1')
    const scripts = entries.filter(([, , , [command]]) => command.toUpperCase() === 'EVALSHA')
    taken.push(...scripts.map(([, , us]) => us / 1000))
  }
  return { calls: taken.length, ms: [...[0.5, 0.99].map((share) => percentile(taken, share)), Math.max(...taken)] }
}
