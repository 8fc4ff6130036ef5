// `npm run check`: everything that can be said about the code without a server, in under a minute.
// `npm run check -- lint types` runs only these.
import { fail, install, run } from './setup.mjs'

const tool = (path, ...args) => ['node', `node_modules/${path}`, ...args]
const checks = {
  lint: tool('@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '--max-diagnostics=50', '.'),
  types: ['node', 'scripts/types.mjs'],
  generated: ['node', 'scripts/generate.mjs', '--check'],
  tests: tool('vitest/vitest.mjs', 'run', '--project=fast', '--reporter=dot'),
}

const named = process.argv.slice(2)
const unknown = named.find((name) => !(name in checks))
if (unknown) fail(`There is no check named ${unknown}; there are ${Object.keys(checks).join(', ')}.`)

await install()

const begun = Date.now()
const colour = process.stdout.isTTY ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' }

async function check(name) {
  const { code, output } = await run(checks[name], { quiet: true, env: colour })
  const seconds = ((Date.now() - begun) / 1000).toFixed(1)
  console.log(code === 0 ? `ok      ${name} (${seconds} s)` : `FAILED  ${name} (${seconds} s)\n\n${output}`)
  return code === 0 ? [] : [name]
}

const failed = (await Promise.all((named.length > 0 ? named : Object.keys(checks)).map(check))).flat()
if (failed.length > 0) fail(`Failed: ${failed.join(', ')}`)
