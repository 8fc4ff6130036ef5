/** A master that Sentinels name. */
export interface SentinelSettings {
  readonly kind: 'sentinel'
  readonly tls: boolean
  readonly sentinels: readonly { readonly host: string; readonly port: number }[]
  readonly master: string
  readonly database: number
  /** Of the servers; the Sentinels are asked without. */
  readonly username?: string
  readonly password?: string
}

export const SENTINEL_HINT = 'redis+sentinel://user:password@host1:26379,host2:26379/MASTER/0'

const FORM = /^redis(s?)\+sentinel:\/\/(?:([^@/]*)@)?([^@/?#]+)\/([A-Za-z0-9._-]+)(?:\/(\d{1,5})?)?$/i
const DEFAULT_PORT = 26379

export function isSentinelUrl(text: string): boolean {
  return /^rediss?\+sentinel:/i.test(text)
}

/** @returns undefined where it is not of the form of {@link SENTINEL_HINT} */
export function readSentinelUrl(text: string): SentinelSettings | undefined {
  const [, secure = '', login = '', hosts = '', master = '', database = '0'] = FORM.exec(text) ?? []
  const urls = hosts.split(',').map((host) => `redis://${login}@${host}`)
  if (master === '' || !urls.every((url) => URL.canParse(url))) return undefined
  const parsed = urls.map((url) => new URL(url))
  const [{ username, password }] = parsed as [URL, ...URL[]]
  try {
    return {
      kind: 'sentinel',
      tls: secure !== '',
      sentinels: parsed.map(({ hostname, port }) => ({
        host: hostname.replace(/^\[|\]$/g, ''),
        port: port === '' ? DEFAULT_PORT : Number(port),
      })),
      master,
      database: Number(database),
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
    }
  } catch {
    // A broken escape in the credentials.
    return undefined
  }
}

/** Without credentials. */
export function sentinelName({ tls, sentinels, master, database }: SentinelSettings): string {
  const hosts = sentinels.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
  return `redis${tls ? 's' : ''}+sentinel://${hosts.join(',')}/${master}${database > 0 ? `/${database}` : ''}`
}
