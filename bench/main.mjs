// Runs the tables. `npm run bench` at the root installs and builds first; see README.md.
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import * as algorithms from './algorithms/rows.mjs'
import { table } from './common/lines.mjs'
import { startRedis } from './common/redis.mjs'
import { folder, writeResults } from './common/results.mjs'
import { fill } from './figures.mjs'
import * as gateway from './gateway/rows.mjs'
import * as library from './library/rows.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, prof: { type: 'string' } },
})
const tables = { library, algorithms, gateway }
const bench = {
  quick: values.quick,
  rounds: values.quick ? 2 : 7,
  warmMs: values.quick ? 300 : 700,
  measureMs: values.quick ? 500 : 2000,
  loadBefore: loadavg()[0],
  progress: (text) => process.stderr.write(process.stderr.isTTY ? `\x1b[2K\r${text}` : `${text}\n`),
}

// Before anything is started: what is named wrongly ends the program.
const work = values.prof === undefined ? runs(positionals) : [profileOf(values.prof)]
const busy = bench.loadBefore > 0.5
if (busy)
  bench.progress(
    `Something else is running (load ${bench.loadBefore.toFixed(1)}): these numbers will not be worth much.`,
  )
bench.redis = await startRedis()
try {
  for (const each of work) await each()
} finally {
  await bench.redis.stop()
}

/** What the command names: whole tables, or rows of one; nothing: all tables. */
function runs(named) {
  const whole = named.length > 0 ? named : Object.keys(tables)
  return whole.map((name) => {
    if (name in tables) return () => run(name, name, tables[name].rows)
    const owner = Object.keys(tables).find((each) => name in tables[each].rows)
    if (owner) return () => run(`${owner}: ${name}`, `part-${name}`, { [name]: tables[owner].rows[name] })
    const all = Object.entries(tables).flatMap(([each, { rows }]) => [each, ...Object.keys(rows)])
    return fail(`There is no table or row '${name}'; there are ${[...new Set(all)].join(', ')}.`)
  })
}

async function run(title, file, rows) {
  const results = {}
  for (const [name, row] of Object.entries(rows)) results[name] = await row(bench)
  const lines = Object.values(results).flatMap((result) => result.lines)
  const written = writeResults(file, bench, results)
  bench.progress('')
  // Documents give the figures of whole runs.
  if (file in tables && !bench.quick) fill()
  console.log(`\n## ${title}\n\n${table(lines)}\n\nRuns: ${written}`)
}

function profileOf(name) {
  const owner = Object.values(tables).find(({ names }) => names.includes(name))
  if (!owner) {
    const all = Object.values(tables).flatMap(({ names }) => names)
    fail(`There is no contender '${name}'; there are: ${all.map((each) => `'${each}'`).join(', ')}.`)
  }
  const directory = join(folder, 'profiles')
  const file = `${name.replaceAll(/\W+/g, '-')}.cpuprofile`
  const execArgv = ['--cpu-prof', `--cpu-prof-dir=${directory}`, `--cpu-prof-name=${file}`]
  return async () => {
    console.log(`${name}: ${await owner.profile(bench, name, execArgv)}\nProfile: ${join(directory, file)}`)
  }
}

function fail(message) {
  console.error(message)
  process.exit(2)
}
