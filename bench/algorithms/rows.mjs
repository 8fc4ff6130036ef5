// The algorithms' rows: each beside the token bucket of the same rounds; what is judged beside a check; worst cases.
import { compare } from '../common/lines.mjs'
import { bytesOf, clientCpu, rate, redisCpu, runsInTurns, throughput, USUAL, wire } from '../library/in-turns.mjs'
import { algorithms } from './contenders.mjs'
import { worst } from './worst.mjs'

const BASE = 'token bucket'
const OTHERS = [
  'leaky bucket',
  'fixed window',
  'calendar window',
  'sliding window',
  'sliding window, strict',
  'sliding log',
  'concurrency',
]

/** Name → what runs it, giving `{ runs, lines }`. */
export const rows = {
  async 'each-algorithm'(bench) {
    const runs = await runsInTurns(bench, 'algorithms', USUAL, [BASE, ...OTHERS])
    const lines = OTHERS.flatMap((work) =>
      [rate, redisCpu, clientCpu, wire].map((each) => compare({ work, peer: BASE, ...each }, runs[work], runs[BASE])),
    )
    return { runs, lines }
  },
  'algorithms-bytes': bytes,
  candidate: (bench) => beside(bench, 'candidate', { atLeast: 0.85 }),
  shadow: (bench) => beside(bench, 'shadow rule'),
  worst,
}

export const names = Object.keys(algorithms)

export async function profile(bench, contender, execArgv) {
  const run = await throughput(bench, { ...USUAL, contender }, execArgv)
  return `${Math.round(run.perSecond)} decisions/s, ${run.clientUs.toFixed(2)} µs of client CPU each`
}

/** A check with something judged beside it, and the same check without. */
async function beside(bench, what, target) {
  const pairs = { 'one limit': `one limit, ${what}`, 'three limits': `three limits, ${what} of one` }
  const runs = await runsInTurns(bench, what, USUAL, Object.entries(pairs).flat())
  const lines = Object.entries(pairs).flatMap(([without, work]) =>
    [{ ...rate, ...target }, redisCpu, clientCpu].map((each) =>
      compare({ work, peer: without, ...each }, runs[work], runs[without]),
    ),
  )
  return { runs, lines }
}

/** Name → how the keys are written that are looked at; where it is another contender's, whose. */
const written = (keys) => ({
  [BASE]: { keys },
  'leaky bucket': { keys },
  'fixed window': { keys },
  'calendar window': { keys },
  // Each of the ten slices once; few keys, so that none expires while it is looked at.
  'sliding window': { keys: keys / 10, fills: 10, apartMs: 500 },
  'sliding log, 3 runs': { contender: 'sliding log', keys },
  'sliding log, 100 runs': { contender: 'sliding log', keys: keys / 100, fills: 100 },
  'concurrency, 3 slots held': { contender: 'concurrency, held', keys },
})

async function bytes(bench) {
  const runs = {}
  for (const [name, spec] of Object.entries(written(bench.quick ? 10_000 : 100_000))) {
    bench.progress(`bytes a key: ${name}`)
    runs[name] = [await bytesOf(bench, { contender: name, ...spec })]
  }
  const measures = [
    { measure: 'bytes a key (MEMORY USAGE)', of: (run) => run.bytes },
    { measure: 'bytes a key (growth of used_memory)', of: (run) => run.usedBytes },
  ]
  const { [BASE]: base, ...others } = runs
  const lines = Object.entries(others).flatMap(([work, own]) =>
    measures.map((each) => compare({ work, peer: BASE, ...each }, own, base)),
  )
  return { runs, lines }
}
