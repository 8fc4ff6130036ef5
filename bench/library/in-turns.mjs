// How rates are measured: everybody in turns, each run in a process of its own.
import { Redis } from 'ioredis'
import { compare } from '../common/lines.mjs'
import { measure } from './measure.mjs'

/** One check's way in all rows but where a row says otherwise. */
export const USUAL = { work: 'throughput', keys: 100_000, limit: 10_000, callers: 256 }

export const rate = { measure: 'decisions/s', of: (run) => run.perSecond }
export const redisCpu = { measure: 'Redis CPU, µs a decision', of: (run) => run.redisUs, digits: 2 }
export const clientCpu = { measure: 'client CPU, µs a decision', of: (run) => run.clientUs, digits: 2 }
export const wire = { measure: 'bytes on the wire a decision', of: (run) => run.wireBytes }

/** Contenders that are one of the others under another load. */
const variants = {
  'headgate, one process': { contender: 'headgate', processes: 1 },
  'headgate, 16 callers': { contender: 'headgate', callers: 16 },
  'headgate, alone on 64 connections': { callers: 64 },
  'headgate, cluster, alone on 64 connections': { callers: 64 },
  'headgate, 1,000 keys': { contender: 'headgate', keys: 1000 },
}

/** Everybody in turns, as often as there are rounds. @returns name → its runs, a round each */
export async function runsInTurns(bench, work, spec, names) {
  const runs = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 1; round <= bench.rounds; round++) {
    for (const name of names) {
      bench.progress(`${work}: round ${round} of ${bench.rounds}, ${name}`)
      runs[name].push(await throughput(bench, { ...spec, contender: name, ...variants[name] }))
    }
  }
  return runs
}

/** The same, with each peer's runs beside Headgate's of the same rounds. */
export async function inTurns(bench, work, spec, [own], peers) {
  const runs = await runsInTurns(bench, work, spec, [own, ...Object.keys(peers)])
  const lines = Object.entries(peers).flatMap(([peer, measures]) =>
    measures.map((each) => compare({ work, peer, ...each }, runs[own], runs[peer])),
  )
  return { runs, lines }
}

export async function throughput(bench, { processes = 1, ...spec }, execArgv) {
  const timing = { warmMs: bench.warmMs, measureMs: bench.measureMs }
  const { results, redisUs, wireBytes } = await measure(bench.redis, { ...spec, ...timing }, { processes, execArgv })
  const sum = (name) => results.reduce((total, result) => total + result[name], 0)
  const decisions = sum('decisions') - sum('wrong')
  return {
    perSecond:
      results.reduce((total, { decisions, wrong, elapsedMs }) => total + (decisions - wrong) / elapsedMs, 0) * 1000,
    redisUs: redisUs / decisions,
    clientUs: sum('cpuUs') / decisions,
    /** Both ways, without what TCP adds. */
    wireBytes: wireBytes / decisions,
    decisions,
    /** Decided without the store, or refused. */
    wrong: sum('wrong'),
    /** The mean share of the budget that a process held idle. */
    stranded: sum('stranded') / processes,
  }
}

/** What a key of this contender takes in Redis once every key was written by `fills`. */
export async function bytesOf(bench, spec) {
  await bench.redis.flush()
  const emptyBytes = await bench.redis.usedBytes()
  const inspect = () => bytesOfKeys({ ...bench.redis, emptyBytes })
  return await measure(bench.redis, { ...USUAL, ...spec, work: 'fill' }, { inspect })
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
