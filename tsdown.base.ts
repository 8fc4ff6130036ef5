import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { UserConfig } from 'tsdown'

interface Entry {
  '@headgate/source'?: string
  default?: string
}

/** One build for every package: what its `exports` name, from the source that stands beside each. */
export function packageBuild(folder: string): UserConfig {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    exports: Record<string, Entry>
  }
  const entry: Record<string, string> = {}
  for (const { '@headgate/source': source, default: built } of Object.values(exports)) {
    if (source && built) entry[basename(built, '.js')] = source
  }
  return {
    entry,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    fixedExtension: false,
    dts: { sourcemap: false },
    sourcemap: true,
    // What is bundled would go out without its licence: everything is a dependency, or named by the package.
    deps: { onlyBundle: [] },
    logLevel: 'warn',
  }
}
