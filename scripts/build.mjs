// `npm run build`: builds the packages whose sources changed. `--force` builds all.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fail, install, root, run } from './setup.mjs'
import { packages, sourceHash, stalePackages, stampOf } from './sources.mjs'

/** Files that go into a build as they are. */
const copies = { limiter: { 'src/script/decide.generated.lua': 'dist/lua/decide.lua' } }

export async function build({ force = false } = {}) {
  const stale = force ? packages : stalePackages()
  if (stale.length > 0) console.log(`Building ${stale.join(', ')} …`)
  // All at once: types of siblings come from their sources, not from their builds.
  await Promise.all(stale.map(buildPackage))
}

async function buildPackage(name) {
  const folder = join(root, 'packages', name)
  const hash = sourceHash(name)
  const { code, output } = await run(['node', join(root, 'node_modules/tsdown/dist/run.mjs')], {
    quiet: true,
    cwd: folder,
  })
  if (code !== 0) fail(`Building packages/${name} failed:\n\n${output}`)
  for (const [from, to] of Object.entries(copies[name] ?? {})) {
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    copyFileSync(join(folder, from), join(folder, to))
  }
  // Last, so that a build that was cut short counts as stale.
  writeFileSync(stampOf(name), hash)
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await install()
  await build({ force: process.argv.includes('--force') })
}
