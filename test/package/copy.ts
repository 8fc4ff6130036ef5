import { cp, mkdir, mkdtemp, readdir, readlink, realpath, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

const MADE = new Set(['.git', '.cache', 'coverage', 'node_modules', 'dist'])

/** A folder under the system's temporary one; the caller removes it. */
export async function temporaryFolder(): Promise<string> {
  return realpath(await mkdtemp(join(tmpdir(), 'headgate-test-')))
}

/** Copies the repository as a fresh clone has it; with `dist` the builds too, without `tests` none of those. */
export async function copyRepository({ dist = false, tests = true } = {}): Promise<string> {
  const copy = await temporaryFolder()
  await cp(ROOT, copy, {
    recursive: true,
    filter: (from) =>
      (!MADE.has(basename(from)) || (dist && basename(from) === 'dist')) && (tests || !from.endsWith('.test.ts')),
  })
  return copy
}

/** Gives a copy the installed packages, its own workspaces among them. */
export async function linkPackages(copy: string): Promise<void> {
  for (const folder of ['node_modules', 'packages/cli/node_modules']) {
    await linkFolder(join(ROOT, folder), join(copy, folder))
  }
}

async function linkFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    // A workspace is a relative link, which as it stands leads to the copy's own folder.
    if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
    else if (entry.name.startsWith('@headgate')) await linkFolder(source, target)
    else await symlink(source, target)
  }
}
