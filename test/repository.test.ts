import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const MADE = new Set(['.git', '.cache', 'coverage', 'node_modules', 'dist'])

/** Every file of the repository that is kept; a checkout need not have git. */
function keptFiles(folder = ROOT): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (MADE.has(entry.name) || /\.(log|tgz)$/.test(entry.name)) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? keptFiles(path) : [path]
  })
}

function filesThatMatch(pattern: RegExp): string[] {
  return keptFiles()
    .filter((file) => pattern.test(readFileSync(file, 'latin1')))
    .map((file) => relative(ROOT, file))
}

it("keeps no package registry's address in any file, the lock file included", () => {
  // Written so that this file does not match itself.
  const known = ['npmjs.(org|com)', 'yarnpkg.com', 'npmmirror.com', 'npm.pkg.github.com', 'jsr.io', 'verdaccio.']
  expect(filesThatMatch(new RegExp(known.map((host) => `[/.]${host}`).join('|')))).toEqual([])
  expect(filesThatMatch(/"resolved": "[a-z+]+:/)).toEqual([])
})

it('has the same licence in every package', () => {
  const licence = readFileSync(join(ROOT, 'LICENSE'), 'utf8')
  for (const name of ['limiter', 'rules', 'gateway', 'cli']) {
    expect(readFileSync(join(ROOT, 'packages', name, 'LICENSE'), 'utf8')).toBe(licence)
  }
})
