import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'

/** Who may see what on the admin address. */
export interface AccessOptions {
  /** Lets its holder do everything. Absent or empty: nobody may change anything. */
  readonly token?: string | undefined
  /** Lets its holder read. Absent or empty: whoever can connect may read. */
  readonly readToken?: string | undefined
  /** Host names that are answered beside IP literals and localhost. */
  readonly hosts?: readonly string[] | undefined
}

const HOST = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/
const BEARER = /^Bearer +([^ ]+) *$/i

/** The checks at the admin address's door. */
export class Access {
  readonly #tokens: readonly Buffer[]
  readonly #readersNeedToken: boolean
  readonly #hosts: ReadonlySet<string>

  constructor({ token, readToken, hosts = [] }: AccessOptions) {
    this.#readersNeedToken = !!readToken
    this.#tokens = [token, readToken].filter((text) => !!text).map((text) => digest(text as string))
    this.#hosts = new Set(['localhost', ...hosts.map((host) => host.toLowerCase())])
  }

  /**
   * Whether a `Host` names this server. A page of somebody else's that had its name pointed here (DNS
   * rebinding) sends that name; nobody can point an IP literal or localhost elsewhere.
   */
  isKnownHost(host: string | undefined): boolean {
    const lower = host?.toLowerCase() ?? ''
    const parts = HOST.exec(lower)
    if (!parts) return false
    const [, ipv6, name = ''] = parts
    if (ipv6 !== undefined) return isIP(ipv6) === 6
    return isIP(name) === 4 || this.#hosts.has(name.replace(/\.$/, '')) || this.#hosts.has(lower)
  }

  /** @param authorization the field's value */
  mayRead(authorization: string | undefined): boolean {
    return !this.#readersNeedToken || this.#holdsToken(authorization)
  }

  #holdsToken(authorization: string | undefined): boolean {
    const given = BEARER.exec(authorization ?? '')?.[1]
    if (given === undefined) return false
    const held = digest(given)
    // All are compared, each in a time that does not tell how much of it was right.
    return this.#tokens.filter((token) => timingSafeEqual(token, held)).length > 0
  }
}

/** Of one length for texts of any length, as a comparison in constant time needs. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest()
}
