// The library's rows: what is run in each, and which of its numbers are held against which target.
import { startCluster } from '../common/cluster.mjs'
import { compare, statement } from '../common/lines.mjs'
import { spread } from '../common/numbers.mjs'
import { announcements } from './announcements.mjs'
import { contenders } from './contenders.mjs'
import { bytesOf, clientCpu, inTurns, rate, redisCpu, throughput, USUAL, wire } from './in-turns.mjs'
import { measure } from './measure.mjs'

/** So many checks of one key never reach it. */
const HOT = { ...USUAL, keys: 1, limit: 1_000_000_000 }

/** A budget that one process may use up by a fifth or so. */
const LEASED = { ...HOT, limit: 5_000_000, period: '1s' }

/** Everybody has used up what there is. */
const REFUSED = { ...USUAL, keys: 10_000, limit: 1 }

/** Name → what runs it, giving `{ runs, lines }`. */
export const rows = {
  'one-limit': (bench) =>
    inTurns(bench, 'one limit', USUAL, ['headgate'], {
      'rate-limiter-flexible': [{ ...rate, atLeast: 2.7 }, { ...redisCpu, atMost: 0.5 }, clientCpu, wire],
      'rate-limiter-flexible, pipelining': [{ ...rate, atLeast: 2.7 }, { ...redisCpu, atMost: 0.5 }, clientCpu, wire],
      'rate-limit-redis': [{ ...rate, atLeast: 2.2 }, redisCpu, clientCpu, wire],
      'rate-limit-redis, pipelining': [{ ...rate, atLeast: 2.2 }, redisCpu, clientCpu, wire],
    }),

  'three-limits': (bench) =>
    inTurns(bench, 'three limits, all or nothing', USUAL, ['headgate, three limits'], {
      RateLimiterUnion: [{ ...rate, atLeast: 4.7 }, { ...redisCpu, atMost: 0.35 }, clientCpu, wire],
      'RateLimiterUnion, pipelining': [{ ...rate, atLeast: 4.7 }, { ...redisCpu, atMost: 0.35 }, clientCpu, wire],
    }),

  'hot-key': (bench) =>
    inTurns(bench, 'one hot key', HOT, ['headgate'], {
      'rate-limiter-flexible': [{ ...rate, atLeast: 7 }, redisCpu, clientCpu, wire],
      'rate-limiter-flexible, pipelining': [{ ...rate, atLeast: 7 }, redisCpu, clientCpu, wire],
    }),

  processes: (bench) =>
    inTurns(bench, 'one hot key, four processes', { ...HOT, processes: 4 }, ['headgate'], {
      'headgate, one process': [rate, { ...redisCpu, atMost: 1.3 }, clientCpu],
    }),

  memory: (bench) =>
    inTurns(bench, 'memory store', USUAL, ['headgate, memory'], {
      RateLimiterMemory: [{ ...rate, atLeast: 2 }, clientCpu],
    }),

  refused: async (bench) => {
    const work = 'refused callers'
    const peer = 'rate-limiter-flexible, refused'
    const { runs, lines } = await inTurns(bench, work, REFUSED, ['headgate, refused'], {
      [peer]: [rate, redisCpu, clientCpu],
    })
    const own = spread(runs['headgate, refused'].map(rate.of))
    lines.push(statement({ work, measure: 'decisions/s', atLeast: 1_000_000 }, { own, value: own, runs: [] }))
    return { runs, lines }
  },

  lease: async (bench) => {
    const work = 'one hot key, leased'
    const { runs, lines } = await inTurns(bench, work, LEASED, ['headgate, lease'], {
      headgate: [rate, redisCpu, clientCpu, wire],
    })
    const own = spread(runs['headgate, lease'].map(rate.of))
    const idle = spread(runs['headgate, lease'].map(({ stranded }) => stranded * 100))
    lines.push(statement({ work, measure: 'decisions/s', atLeast: 1_000_000 }, { own, value: own, runs: [] }))
    const stranded = { work, measure: 'held idle, % of the budget', atMost: 2, digits: 4 }
    lines.push(statement(stranded, { own: idle, value: idle, runs: [] }))
    return { runs, lines }
  },

  batches: (bench) =>
    inTurns(bench, 'batches: 256 callers', USUAL, ['headgate'], {
      'headgate, 16 callers': [rate, redisCpu, clientCpu, wire],
      'headgate, alone on 64 connections': [rate, redisCpu, clientCpu, wire],
    }),

  async cluster(bench) {
    bench.progress('cluster: three masters begin')
    const redis = await startCluster()
    const measures = [rate, redisCpu, clientCpu, wire]
    try {
      return await inTurns({ ...bench, redis }, 'Cluster of three masters', USUAL, ['headgate, cluster'], {
        'headgate, cluster, alone on 64 connections': measures,
        'rate-limiter-flexible, cluster': measures,
        'rate-limiter-flexible, cluster, pipelining': measures,
      })
    } finally {
      await redis.stop()
    }
  },

  latency,
  announcements,
  bytes,

  keys: (bench) =>
    inTurns(bench, '1,000,000 live keys', { ...USUAL, keys: bench.quick ? 200_000 : 1_000_000 }, ['headgate'], {
      'headgate, 1,000 keys': [{ ...rate, atLeast: 0.85 }, redisCpu, clientCpu],
    }),
}

export const names = Object.keys(contenders)

/** One run of one contender; `execArgv` makes node write a profile of it. */
export async function profile(bench, contender, execArgv) {
  const run = await throughput(bench, { ...USUAL, contender }, execArgv)
  return `${Math.round(run.perSecond)} decisions/s, ${run.clientUs.toFixed(2)} µs of client CPU each`
}

async function latency(bench) {
  const runs = []
  const timing = { warmMs: bench.warmMs, measureMs: bench.measureMs }
  const spec = { ...USUAL, ...timing, contender: 'headgate', work: 'latency', keys: 10_000, perSecond: 2000 }
  for (let round = 1; round <= bench.rounds; round++) {
    bench.progress(`latency: round ${round} of ${bench.rounds}`)
    const { results } = await measure(bench.redis, spec)
    runs.push(results[0])
  }
  const work = 'added latency at 2,000/s'
  const line = (index) => ({
    own: spread(runs.map((run) => run.decidedMs[index])),
    other: spread(runs.map((run) => run.bareMs[index])),
    value: spread(runs.map((run) => run.decidedMs[index] - run.bareMs[index])),
    runs,
  })
  const peer = 'bare GET'
  const lines = [
    statement({ work, measure: 'p50, ms (difference)', peer, digits: 3 }, line(0)),
    statement({ work, measure: 'p99, ms (difference)', peer, digits: 3, atMost: 0.5 }, line(1)),
    statement({ work, measure: 'p99.9, ms (difference)', peer, digits: 3 }, line(2)),
  ]
  return { runs: { headgate: runs }, lines }
}

async function bytes(bench) {
  const runs = {}
  for (const contender of ['headgate', 'rate-limiter-flexible', 'rate-limit-redis']) {
    bench.progress(`bytes a key: ${contender}`)
    runs[contender] = [await bytesOf(bench, { contender, keys: bench.quick ? 10_000 : 100_000 })]
  }
  const of = (run) => run.bytes
  const about = { work: 'token bucket', measure: 'bytes a key (MEMORY USAGE)', of, digits: 1 }
  const whole = { ...about, measure: 'bytes a key (growth of used_memory)', of: (run) => run.usedBytes }
  const { headgate, 'rate-limiter-flexible': flexible, 'rate-limit-redis': redis } = runs
  const lines = [
    compare({ ...about, peer: 'rate-limiter-flexible', atMost: 1.7 }, headgate, flexible),
    compare({ ...about, peer: 'rate-limit-redis' }, headgate, redis),
    compare({ ...whole, peer: 'rate-limiter-flexible' }, headgate, flexible),
    compare({ ...whole, peer: 'rate-limit-redis' }, headgate, redis),
  ]
  return { runs, lines }
}
