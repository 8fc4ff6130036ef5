// A build carries the hash of what it was made from, so that no test runs yesterday's build.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './setup.mjs'

/** The packages that are built, a package after those it needs. */
export const packages = ['limiter', 'rules', 'gateway', 'cli']

const stampOf = (name) => join(root, 'packages', name, 'dist/.sources')

/** The hash of everything that a package's build is made from. */
export function sourceHash(name) {
  const folder = join(root, 'packages', name)
  const files = readdirSync(join(folder, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
  files.push(join(folder, 'package.json'), join(folder, 'tsdown.config.ts'))
  files.push(join(root, 'tsdown.base.ts'), join(root, 'tsconfig.base.json'))
  const hash = createHash('sha256')
  for (const file of files.sort())
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0')
  return hash.digest('hex')
}

/** @returns {string[]} the packages whose build is missing or older than their sources */
export function stalePackages() {
  return packages.filter((name) => {
    const stamp = stampOf(name)
    return !existsSync(stamp) || readFileSync(stamp, 'utf8') !== sourceHash(name)
  })
}

export { stampOf }
