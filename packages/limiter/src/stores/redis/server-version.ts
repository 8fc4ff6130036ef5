import { StoreFault } from '../../store.ts'
import type { Link } from './connection.ts'
import { warnOnce } from './warn-once.ts'

/** As HELLO tells it, in whatever form a client gives the reply, and as INFO does. */
const VERSION = /"version"(?:,"value")?[,:]"(\d+)\.(\d+)|redis_version:(\d+)\.(\d+)/

/**
 * Refuses a server that is known to be older than Redis 7.0. Whoever does not tell its version is trusted.
 * @throws StoreFault that says which promise it could not keep
 */
export async function refuseOldServer(send: Link['send']): Promise<void> {
  const version = (await versionBy(send, ['HELLO'])) ?? (await versionBy(send, ['INFO', 'server']))
  if (version === undefined || version.major >= 7) return
  const problem = `the server is Redis ${version.major}.${version.minor}, whose scripts could stop half-way, with a part of the limits charged: it keeps no limits, and each process counts for itself by onStoreFailure; use Redis 7.0 or later, or Valkey`
  warnOnce('HEADGATE_OLD_SERVER', problem)
  throw new StoreFault('connection', problem, true)
}

async function versionBy(send: Link['send'], command: readonly string[]) {
  try {
    const [, ...parts] = VERSION.exec(JSON.stringify(await send(command))) ?? []
    const [major, minor] = parts.filter((part) => part !== undefined).map(Number)
    return major === undefined ? undefined : { major, minor }
  } catch {
    return undefined
  }
}
