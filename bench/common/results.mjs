import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'

export const folder = join(import.meta.dirname, '../results')

/** Writes everything that was measured, with what it was measured on. */
export function writeResults(name, bench, rows) {
  mkdirSync(folder, { recursive: true })
  const { redis, loadBefore, progress, ...method } = bench
  const file = join(folder, `${method.quick ? 'quick-' : ''}${name}.json`)
  writeFileSync(file, `${JSON.stringify({ ...machine({ redis, loadBefore }), method, rows }, null, 2)}\n`)
  return file
}

function machine({ redis, loadBefore }) {
  const [{ model }] = cpus()
  return {
    date: new Date().toISOString(),
    commit: commit(),
    cpu: { model, cores: cpus().length },
    loadBefore,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    versions: { node: process.version, redis: redis.version, ...peers() },
  }
}

function peers() {
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'))
  const { version } = createRequire(import.meta.url)('headgate/package.json')
  return { headgate: version, ...dependencies }
}

/** The commit that was measured; `+`: and what was not committed yet. */
function commit() {
  const git = (...args) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--', '../../packages') ? '+' : '')
  } catch {
    return 'unknown'
  }
}
