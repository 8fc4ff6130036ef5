import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** A server that suites run on. */
export interface TestServer {
  readonly name: string
  readonly program: string
  /** It is not here; `npm test` has said why. On Debian it can be had, so that CI fails there instead. */
  readonly skipped: boolean
}

export const SERVERS: readonly TestServer[] = [
  { name: 'Redis 7', program: 'redis-server', skipped: false },
  newer('Redis 8', 'redis-8'),
  newer('Valkey 8', 'valkey-8'),
]

/** One that `scripts/newer-servers.mjs` gets. */
function newer(name: string, file: string): TestServer {
  const program = join(import.meta.dirname, '../.cache/servers', file)
  const required = process.env.CI === 'true' && existsSync('/etc/debian_version')
  return { name, program, skipped: !required && !existsSync(program) }
}
