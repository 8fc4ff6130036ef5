/** A cluster as a rule file names it: `redis+cluster://user:password@host:port,host:port`. */
export interface ClusterUrl {
  readonly tls: boolean
  readonly username: string
  readonly password: string
  /** `host:port` of each server to ask first. */
  readonly hosts: readonly string[]
}

const CLUSTER = /^(rediss?)\+cluster:\/\/(?:([^@/]*)@)?([^@/?#]*)\/?$/i
const HOST = /^(?:\[[0-9a-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?$/i

export function isClusterUrl(text: string): boolean {
  return /^rediss?\+cluster:/i.test(text)
}

/** @returns undefined where it is not of that form */
export function readClusterUrl(text: string): ClusterUrl | undefined {
  const [, scheme, login = '', list] = CLUSTER.exec(text) ?? []
  const hosts = list?.split(',') ?? []
  if (scheme === undefined || !hosts.every((host) => HOST.test(host) && URL.canParse(`redis://${host}`)))
    return undefined
  const [username = '', ...rest] = login.split(':')
  try {
    return {
      tls: scheme.toLowerCase() === 'rediss',
      username: decodeURIComponent(username),
      password: decodeURIComponent(rest.join(':')),
      hosts: hosts.map((host) => (/:\d+$/.test(host) ? host : `${host}:6379`)),
    }
  } catch {
    return undefined
  }
}
