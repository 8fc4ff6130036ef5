import { fileURLToPath } from 'node:url'
import { stalePackages } from '../scripts/sources.mjs'

/** The command line as it is shipped; it runs the build. Call {@link assertFreshBuild} first. */
export const HEADGATE_BIN = fileURLToPath(new URL('../packages/cli/bin/headgate.js', import.meta.url))

/**
 * For tests that spawn processes: those run the build, for Node 20 cannot run TypeScript.
 * @throws Error when a package's sources changed since it was built
 */
export function assertFreshBuild(): void {
  const stale = stalePackages()
  if (stale.length > 0) throw new Error(`The build of ${stale.join(', ')} is stale. Run: npm run build`)
}
