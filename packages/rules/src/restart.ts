import { keySecretOf } from './load.ts'
import type { RuleFile } from './rule-file.ts'

/** The settings that a running process keeps, by their names in the file. */
function settings(file: RuleFile): Record<string, unknown> {
  const { gateway, admin } = file
  return {
    store: file.store,
    prefix: file.prefix,
    timeout: file.timeoutMs,
    instances: file.instances,
    keySecret: keySecretOf(file),
    gateway: gateway !== undefined,
    'gateway.listen': gateway?.listen,
    'gateway.workers': gateway?.workers,
    'gateway.drain': gateway?.drainMs,
    'gateway.paths': gateway?.paths,
    'gateway.cors': gateway?.cors,
    'gateway.trustedProxies': gateway?.trustedProxies,
    'gateway.trustedHops': gateway?.trustedHops,
    'gateway.clientAddress': gateway?.clientAddress,
    admin: admin !== undefined,
    'admin.listen': admin?.listen,
    'admin.token': admin?.token,
    'admin.readToken': admin?.readToken,
    'admin.hosts': admin?.hosts,
  }
}

/**
 * The names of the settings that changed and wait for a restart: everything but rules, dimensions,
 * defaults and routes. A section that came or went is named alone.
 */
export function needsRestart(before: RuleFile, after: RuleFile): string[] {
  const [old, fresh] = [settings(before), settings(after)]
  const changed = Object.keys(old).filter((name) => JSON.stringify(old[name]) !== JSON.stringify(fresh[name]))
  return changed.filter((name) => !changed.includes(name.split('.')[0] as string) || !name.includes('.'))
}
