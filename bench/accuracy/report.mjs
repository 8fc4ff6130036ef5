// The document that `npm run accuracy` writes, from its results.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { markdownTable } from '../common/markdown.mjs'
import { contenders } from './contenders.mjs'
import { traces } from './traces.mjs'

/** @param {string} file what was written by a run */
export function document(file) {
  const { date, commit, cpu, versions, loadBefore, method, rows } = JSON.parse(readFileSync(file, 'utf8'))
  const { limit, periodMs, seed } = method
  const played = Object.keys(contenders).filter((name) => Object.values(rows).some((row) => name in row))
  return `# Accuracy: what passes, beside what is promised

Made by \`npm run accuracy\`; do not edit. How it is played and judged: [bench](../bench/README.md#accuracy). Raw figures:
[accuracy.json](../bench/results/accuracy.json).

${limit} units in ${periodMs / 1000} s, four callers in processes of their own, one Redis ${versions.redis}; node ${versions.node}, ${cpu.cores} × ${cpu.model},
load before ${loadBefore.toFixed(1)}, seed ${seed}, commit ${commit}, ${date.slice(0, 10)}. All limiters are asked at the same instants.

- **over**: the most units that passed beyond what the limiter promises itself, at the worst instant.
- **wrongly refused**: units refused although its promise had room for them.
- **most in a period**: the most that passed within any period of ${periodMs / 1000} s, whatever is promised; the limit is ${limit}.
- **errors**: rejected, or no answer within 3 s. **local**: decided without Redis, as Headgate does while it is away. **slowest**: the longest wait for an answer.

An answer counts against a limiter only if no instant between sending and hearing makes it right.

## What each promises

${markdownTable(['limiter', 'version', 'promise', 'options'], played.map(promise))}
${Object.entries(rows).map(section).join('')}`
}

function promise(name) {
  const { package: from, promises, options } = contenders[name]
  return [name, `${from} ${versionOf(from)}`, promises, options]
}

/** Its package.json need not be among its exports. */
function versionOf(name) {
  const { resolve } = createRequire(import.meta.url)
  const [place] = resolve.paths(name).flatMap((folder) => {
    try {
      return [JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')).version]
    } catch {
      return []
    }
  })
  return place ?? 'not installed'
}

function section([trace, row]) {
  const cells = Object.entries(row).map(([name, result]) => [
    traces[trace].several && !contenders[name].several ? `${name}, one after the other` : name,
    `${result.passed} of ${result.asked}`,
    count(result.over),
    count(result.wronglyRefused),
    `${result.mostInAPeriod}`,
    count(result.errors),
    `${result.local || ''}`,
    `${result.slowestMs} ms`,
  ])
  const head = ['limiter', 'passed', 'over', 'wrongly refused', 'most in a period', 'errors', 'local', 'slowest']
  return `
## ${traces[trace].title}

${traces[trace].what}

${markdownTable(head, cells)}
`
}

const count = (number) => (number === 0 ? '0' : `**${number}**`)
