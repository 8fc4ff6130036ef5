// The library's rows: what is run in each, and which of its numbers are held against which target.
import { Redis } from 'ioredis'
import { compare, statement } from '../common/lines.mjs'
import { spread } from '../common/numbers.mjs'
import { contenders } from './contenders.mjs'
import { measure } from './measure.mjs'

/** One check's way in all rows but where a row says otherwise. */
const USUAL = { work: 'throughput', keys: 100_000, limit: 10_000, callers: 256 }
/** So many checks of one key never reach it. */
const HOT = { ...USUAL, keys: 1, limit: 1_000_000_000 }

const rate = { measure: 'decisions/s', of: (run) => run.perSecond }
const redisCpu = { measure: 'Redis CPU, µs a decision', of: (run) => run.redisUs, digits: 2 }
const clientCpu = { measure: 'client CPU, µs a decision', of: (run) => run.clientUs, digits: 2 }

/** Name → what runs it, giving `{ runs, lines }`. */
export const rows = {
  'one-limit': (bench) =>
    inTurns(bench, 'one limit', USUAL, ['headgate'], {
      'rate-limiter-flexible': [{ ...rate, atLeast: 2.7 }, { ...redisCpu, atMost: 0.5 }, clientCpu],
      'rate-limiter-flexible, pipelining': [{ ...rate, atLeast: 2.7 }, { ...redisCpu, atMost: 0.5 }, clientCpu],
      'rate-limit-redis': [{ ...rate, atLeast: 2.2 }, redisCpu, clientCpu],
      'rate-limit-redis, pipelining': [{ ...rate, atLeast: 2.2 }, redisCpu, clientCpu],
    }),

  'three-limits': (bench) =>
    inTurns(bench, 'three limits, all or nothing', USUAL, ['headgate, three limits'], {
      RateLimiterUnion: [{ ...rate, atLeast: 4.7 }, { ...redisCpu, atMost: 0.35 }, clientCpu],
      'RateLimiterUnion, pipelining': [{ ...rate, atLeast: 4.7 }, { ...redisCpu, atMost: 0.35 }, clientCpu],
    }),

  'hot-key': (bench) =>
    inTurns(bench, 'one hot key', HOT, ['headgate'], {
      'rate-limiter-flexible': [{ ...rate, atLeast: 7 }, redisCpu, clientCpu],
      'rate-limiter-flexible, pipelining': [{ ...rate, atLeast: 7 }, redisCpu, clientCpu],
    }),

  processes: (bench) =>
    inTurns(bench, 'one hot key, four processes', { ...HOT, processes: 4 }, ['headgate'], {
      'headgate, one process': [rate, { ...redisCpu, atMost: 1.3 }, clientCpu],
    }),

  memory: (bench) =>
    inTurns(bench, 'memory store', USUAL, ['headgate, memory'], {
      RateLimiterMemory: [{ ...rate, atLeast: 2 }, clientCpu],
    }),

  latency,
  bytes,

  keys: (bench) =>
    inTurns(bench, '1,000,000 live keys', { ...USUAL, keys: bench.quick ? 200_000 : 1_000_000 }, ['headgate'], {
      'headgate, 1,000 keys': [{ ...rate, atLeast: 0.85 }, redisCpu, clientCpu],
    }),
}

/** Those that are one of the contenders under another load. */
const variants = {
  'headgate, one process': { contender: 'headgate', processes: 1 },
  'headgate, 1,000 keys': { contender: 'headgate', keys: 1000 },
}

/** Everybody in turns, as often as there are rounds; then each peer's runs beside Headgate's of the same rounds. */
async function inTurns(bench, work, spec, [own], peers) {
  const names = [own, ...Object.keys(peers)]
  const runs = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 1; round <= bench.rounds; round++) {
    for (const name of names) {
      bench.progress(`${work}: round ${round} of ${bench.rounds}, ${name}`)
      runs[name].push(await throughput(bench, { ...spec, contender: name, ...variants[name] }))
    }
  }
  const lines = Object.entries(peers).flatMap(([peer, measures]) =>
    measures.map((each) => compare({ work, peer, ...each }, runs[own], runs[peer])),
  )
  return { runs, lines }
}

export const names = Object.keys(contenders)

/** One run of one contender; `execArgv` makes node write a profile of it. */
export async function profile(bench, contender, execArgv) {
  const run = await throughput(bench, { ...USUAL, contender }, execArgv)
  return `${Math.round(run.perSecond)} decisions/s, ${run.clientUs.toFixed(2)} µs of client CPU each`
}

async function throughput(bench, { processes = 1, ...spec }, execArgv) {
  const timing = { warmMs: bench.warmMs, measureMs: bench.measureMs }
  const { results, redisUs } = await measure(bench.redis, { ...spec, ...timing }, { processes, execArgv })
  const sum = (name) => results.reduce((total, result) => total + result[name], 0)
  const decisions = sum('decisions') - sum('wrong')
  return {
    perSecond:
      results.reduce((total, { decisions, wrong, elapsedMs }) => total + (decisions - wrong) / elapsedMs, 0) * 1000,
    redisUs: redisUs / decisions,
    clientUs: sum('cpuUs') / decisions,
    decisions,
    /** Decided without the store, or refused. */
    wrong: sum('wrong'),
  }
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
    await bench.redis.flush()
    const emptyBytes = await bench.redis.usedBytes()
    const spec = { ...USUAL, contender, work: 'fill', keys: bench.quick ? 10_000 : 100_000 }
    runs[contender] = [await measure(bench.redis, spec, { inspect: () => bytesOfKeys({ ...bench.redis, emptyBytes }) })]
  }
  const of = (run) => run.bytes
  const about = { work: 'token bucket', measure: 'bytes a key (MEMORY USAGE)', of, digits: 1 }
  const whole = { ...about, measure: 'bytes a key (growth of used_memory)', of: (run) => run.usedBytes }
  const { headgate, 'rate-limiter-flexible': flexible, 'rate-limit-redis': redis } = runs
  const lines = [
    compare({ ...about, peer: 'rate-limiter-flexible', atMost: 1.7 }, headgate, flexible),
    compare({ ...about, peer: 'rate-limit-redis' }, headgate, redis),
    compare({ ...whole, peer: 'rate-limiter-flexible' }, headgate, flexible),
  ]
  return { runs, lines }
}

/** The mean over every key that a limiter wrote. */
async function bytesOfKeys({ port, emptyBytes, usedBytes }) {
  const grown = (await usedBytes()) - emptyBytes
  const client = new Redis({ host: '127.0.0.1', port, enableAutoPipelining: true })
  const keys = await client.keys('rate_limit:bench:*')
  const sizes = await Promise.all(keys.map((key) => client.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')))
  client.disconnect()
  const bytes = sizes.reduce((total, size) => total + size, 0) / keys.length
  return { keys: keys.length, example: keys[0], bytes, usedBytes: grown / keys.length }
}
