// The gateway's table: CPU time of the gateway's process for each request that it passed on.
import { compare } from '../common/lines.mjs'
import { BODY } from './answer.mjs'
import { contenders } from './contenders.mjs'
import { cpuUs, HEADGATE, start, WITH_CANDIDATE } from './processes.mjs'
import { load, PATH } from './wrk.mjs'

export const names = [HEADGATE, WITH_CANDIDATE, ...Object.keys(contenders)]

/** Against whom which ratio of CPU time is to be reached; the others are there to look at. */
const targets = {
  'fastify, one limit': 0.55,
  'fastify, one limit, pipelining': 0.55,
  'undici, no limit': 1.3,
}

export const rows = { gateway }

async function gateway(bench) {
  return withUpstream(bench, async (way) => {
    const processes = {}
    try {
      for (const name of names) processes[name] = await started(bench, name, way)
      return await inTurns(bench, processes)
    } finally {
      await Promise.all(Object.values(processes).map((each) => each.stop()))
    }
  })
}

/** One run of one contender; `execArgv` makes node write a profile of it. */
export async function profile(bench, name, execArgv) {
  return withUpstream(bench, async (way) => {
    const own = await started(bench, name, way, execArgv)
    const run = await once(bench, own).finally(() => own.stop())
    return `${run.cpuUs.toFixed(1)} µs of CPU a request, ${Math.round(run.perSecond)} requests/s`
  })
}

async function withUpstream(bench, use) {
  const upstream = await start('upstream', {})
  try {
    return await use({ upstream: `http://127.0.0.1:${upstream.port}`, redisPort: bench.redis.port })
  } finally {
    await upstream.stop()
  }
}

async function started(bench, name, way, execArgv) {
  bench.progress(`gateway: starting and warming up ${name}`)
  const own = await start(name, way, execArgv)
  const response = await fetch(`http://127.0.0.1:${own.port}${PATH}`, { headers: { 'x-user-id': 'user-00000001' } })
  const limited = [...response.headers.keys()].some((field) => field.includes('ratelimit'))
  const expected = !/no limit|alone/.test(name)
  if (response.status !== 200 || (await response.text()) !== BODY || limited !== expected) {
    throw new Error(`${name} does not do its work: status ${response.status}, limit fields: ${limited}`)
  }
  await load(own.port, bench.quick ? 1 : 4)
  return own
}

async function inTurns(bench, processes) {
  const runs = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 1; round <= bench.rounds; round++) {
    for (const name of names) {
      bench.progress(`gateway: round ${round} of ${bench.rounds}, ${name}`)
      runs[name].push(await once(bench, processes[name]))
    }
  }
  const line = (peer, about) => compare({ work: 'three limits on Redis', peer, ...about }, runs[HEADGATE], runs[peer])
  const peers = Object.keys(contenders)
  const cpu = peers.map((peer) =>
    line(peer, { measure: 'CPU, µs a request', of: (run) => run.cpuUs, digits: 1, atMost: targets[peer] }),
  )
  const rate = peers.map((peer) => line(peer, { measure: 'requests/s', of: (run) => run.perSecond }))
  const beside = (about) =>
    compare({ work: 'a candidate beside', peer: HEADGATE, ...about }, runs[WITH_CANDIDATE], runs[HEADGATE])
  const candidate = [
    beside({ measure: 'requests/s', of: (run) => run.perSecond, atLeast: 0.85 }),
    beside({ measure: 'CPU, µs a request', of: (run) => run.cpuUs, digits: 1 }),
    beside({ measure: 'Redis CPU, µs a request', of: (run) => run.redisUs, digits: 1 }),
  ]
  return { runs, lines: [...cpu, ...rate, ...candidate] }
}

async function once({ redis, quick }, { port, pid, wrong = () => 0 }) {
  const before = { cpu: cpuUs(pid), redis: await redis.cpuUs(), wrong: await wrong() }
  const result = await load(port, quick ? 1 : 2)
  const { requests, elapsedMs, p50Ms, p99Ms } = result
  return {
    cpuUs: (cpuUs(pid) - before.cpu) / requests,
    redisUs: ((await redis.cpuUs()) - before.redis) / requests,
    perSecond: (requests / elapsedMs) * 1000,
    p50Ms,
    p99Ms,
    decisions: requests,
    /** Errors, refusals, and what was decided without the store: such a run says nothing. */
    wrong: result.wrong + (await wrong()) - before.wrong,
  }
}
