// npm ships `exports` as they stand, and `@headgate/source` names files that are not in the tarball:
// each package's prepack takes the condition out, its postpack puts package.json back.
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fail } from './setup.mjs'
import { stalePackages } from './sources.mjs'

const manifest = 'package.json'
const kept = '.package.json.kept'
const steps = { strip, restore }

function strip() {
  if (!existsSync(kept) && stalePackages().includes(basename(process.cwd())))
    fail('The build is stale. Run: npm run build')
  // An earlier pack that was cut short has left the true one aside.
  if (!existsSync(kept)) copyFileSync(manifest, kept)
  const json = JSON.parse(readFileSync(kept, 'utf8'))
  for (const target of Object.values(json.exports)) delete target['@headgate/source']
  delete json.scripts
  delete json.devDependencies
  writeFileSync(manifest, `${JSON.stringify(json, null, 2)}\n`)
}

function restore() {
  if (existsSync(kept)) renameSync(kept, manifest)
}

steps[process.argv[2]]()
