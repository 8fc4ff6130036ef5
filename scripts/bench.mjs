// `npm run bench` and `npm run accuracy`: Headgate beside its peers, on a Redis of its own. bench/README.md says how.
//   npm run bench -- library            one table (or gateway, or a row such as memory)
//   npm run bench -- --quick            short runs, only to see that everything works
//   npm run bench -- --prof headgate    one run of one contender with a CPU profile
// The first argument, which package.json gives, is the program; it begins when everything is installed and built.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { getServers } from './servers.mjs'
import { fail, install, root, run } from './setup.mjs'

const folder = join(root, 'bench')

/** The peers, which are in no workspace; npm ci takes the stamp away with what it replaces. */
async function installPeers() {
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8')
  const stamp = join(folder, 'node_modules/.installed-lock.json')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  console.log('Installing what is compared with (npm ci in bench) …')
  const { code } = await run(['npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder })
  if (code !== 0) fail('npm ci failed in bench (see above). It needs npm and a package registry that it can reach.')
  writeFileSync(stamp, lock)
}

await install()
await installPeers()
await build()
await getServers()
const { code } = await run(['node', ...process.argv.slice(2)])
process.exitCode = code
