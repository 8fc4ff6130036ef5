// `npm run accuracy`: what passes, held against what each limiter promises itself. README.md says how.
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startRedis } from '../common/redis.mjs'
import { writeResults } from '../common/results.mjs'
import { contenders } from './contenders.mjs'
import { mostWithin } from './judge.mjs'
import { play } from './play.mjs'
import { document } from './report.mjs'
import { randomOf, traces } from './traces.mjs'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    trace: { type: 'string' },
    only: { type: 'string' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string' },
  },
})
const quick = values.quick
const seed = Number(values.seed)
const main = quick ? { limit: 10, periodMs: 1000 } : { limit: 20, periodMs: 5000 }
const short = { limit: Math.ceil(main.limit / 4), periodMs: main.periodMs / 5 }
const chosen = Object.keys(traces).filter((name) => values.trace?.split(',').includes(name) ?? true)
const partial = quick || values.trace !== undefined || values.only !== undefined

const loadBefore = loadavg()[0]
const rows = {}
for (const name of chosen) {
  const names = playersOf(traces[name])
  process.stderr.write(`${traces[name].title}: ${names.length} limiters\n`)
  const limits = traces[name].several ? [short, main] : [main]
  const { atOnce = names.length } = traces[name]
  rows[name] = {}
  for (let from = 0; from < names.length; from += atOnce) {
    const some = names.slice(from, from + atOnce)
    const { attempts, awayMs } = await play(traces[name], { names: some, limits, random: randomOf(seed) })
    for (const each of some) rows[name][each] = judged(contenders[each], attempts[each], { limits, awayMs })
  }
}

const redis = await startRedis()
const about = { quick, seed, ...main, redis, loadBefore }
const file = writeResults(partial ? 'part-accuracy' : 'accuracy', about, rows)
await redis.stop()
const text = document(file)
const out = values.out ?? (partial ? undefined : join(import.meta.dirname, '../../docs/accuracy.md'))
if (out !== undefined) writeFileSync(out, text)
console.log(text)

function playersOf(trace) {
  return Object.keys(contenders).filter((name) => {
    const { costs, onlySeveral, leastPeriodMs = 0 } = contenders[name]
    if (values.only !== undefined && !name.toLowerCase().includes(values.only.toLowerCase())) return false
    if (main.periodMs < leastPeriodMs) return false
    return trace.several || (!onlySeveral && (costs || !trace.costs))
  })
}

/** Each counter by itself; a refusal is wrong where the request fitted all limits that it was asked of. */
function judged({ judge }, attempts, { limits, awayMs }) {
  const byKey = [...grouped(attempts).values()]
  const each = byKey.flatMap((ofKey) => {
    const whole = limits.map((limit) => judge(ofKey, limit))
    return lives(ofKey, awayMs).map((ofLife) => {
      const judgements = ofLife === ofKey ? whole : limits.map((limit) => judge(ofLife, limit))
      // Who remembers what the server has forgotten is right to refuse.
      const fits = (attempt) => [...judgements, ...whole].every(({ hasRoom }) => hasRoom(attempt))
      const refused = ofLife.filter(({ admitted, local }) => admitted === false && !local)
      return { over: Math.max(...judgements.map(({ over }) => over)), wronglyRefused: units(refused.filter(fits)) }
    })
  })
  const tookMs = attempts.map(({ sentMs, receivedMs }) => receivedMs - sentMs)
  return {
    asked: units(attempts),
    passed: units(attempts.filter(({ admitted }) => admitted)),
    over: Math.max(...each.map(({ over }) => over)),
    wronglyRefused: each.reduce((total, { wronglyRefused }) => total + wronglyRefused, 0),
    mostInAPeriod: Math.max(...byKey.map((ofKey) => mostWithin(ofKey, main.periodMs))),
    errors: attempts.filter(({ admitted }) => admitted === undefined).length,
    local: attempts.filter(({ local }) => local).length,
    slowestMs: Math.round(Math.max(...tookMs)),
  }
}

/** Before and after a restart each life of the server is judged by itself: what it has forgotten is told apart. */
function lives(attempts, awayMs) {
  if (awayMs === undefined) return [attempts]
  const [goneMs, backMs] = awayMs
  const after = attempts.filter(({ receivedMs }) => receivedMs >= goneMs)
  // Which of both lives these were charged in, if in any, nobody knows.
  const unsure = (each) => (each.sentMs < backMs && each.admitted ? { ...each, admitted: undefined } : each)
  return [attempts.filter(({ receivedMs }) => receivedMs < goneMs), after.map(unsure)]
}

function units(attempts) {
  return attempts.reduce((total, { cost }) => total + cost, 0)
}

function grouped(attempts) {
  const groups = new Map()
  for (const attempt of attempts) groups.set(attempt.key, [...(groups.get(attempt.key) ?? []), attempt])
  return groups
}
