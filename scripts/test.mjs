// `npm test`: sets everything up, runs every suite and ends with the line `N passed, N failed`.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { getNewerServers } from './newer-servers.mjs'
import { getServers } from './servers.mjs'
import { install, root, run } from './setup.mjs'

// Measurements come last and alone: see the projects in vitest.config.ts.
const suites = ['fast', 'e2e', 'timing']
// A suite that hangs must fail the run, not hold it up for ever.
const wholeRunMs = 19 * 60_000

const begun = Date.now()

async function runSuite(suite) {
  const file = join(root, '.cache/results', `${suite}.json`)
  rmSync(file, { force: true })
  const { code, output } = await run(
    ['node', 'node_modules/vitest/vitest.mjs', 'run', `--project=${suite}`, '--passWithNoTests'].concat([
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${file}`,
    ]),
    { timeoutMs: Math.max(1000, wholeRunMs - (Date.now() - begun)) },
  )
  if (output) console.error(output)
  return { suite, ...count(file, code) }
}

function count(file, code) {
  const report = readReport(file)
  const tests = report.testResults.flatMap((result) => result.assertionResults.map(({ status }) => status))
  const passed = tests.filter((status) => status === 'passed').length
  // A file that could not be loaded has no tests to fail, and an error outside of any test belongs to none.
  const broken = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length
  const failed = tests.filter((status) => status === 'failed').length + broken
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, skipped: tests.length - passed - (failed - broken) }
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { testResults: [] }
  }
}

await install()
await build({})
await getServers()
const withoutNewer = await getNewerServers()
if (withoutNewer !== undefined) console.log(`Tests on Redis 8 and Valkey 8 are skipped: ${withoutNewer}.`)
mkdirSync(join(root, '.cache/results'), { recursive: true })

const results = []
for (const suite of suites) results.push(await runSuite(suite))

const sum = (what) => results.reduce((total, result) => total + result[what], 0)
console.log(`\nIn ${Math.round((Date.now() - begun) / 1000)} s:`)
for (const { suite, passed, failed, skipped } of results) {
  console.log(`  ${suite.padEnd(6)}  ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
}
console.log(`${sum('passed')} passed, ${sum('failed')} failed`)
process.exitCode = sum('failed') > 0 || sum('passed') === 0 ? 1 : 0
