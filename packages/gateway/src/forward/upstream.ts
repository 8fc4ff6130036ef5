import { isIP } from 'node:net'
import { buildConnector, Client } from 'undici'

/** How long an upstream may take to accept a connection, where the route's own timeout is not shorter. */
const CONNECT_TIMEOUT_MS = 10_000

/**
 * How long an unused connection is kept. Below the 5 s after which common servers close theirs; a
 * server's own `Keep-Alive: timeout` counts instead, less a second for the way.
 */
const IDLE_MS = 4000

/** One connection to an upstream, opened when it is first used and again when it was lost. */
export class UpstreamClient extends Client {
  /** Answers that came over the connection as it is open now; 0 on a fresh one. */
  served = 0
}

export interface UpstreamEvents {
  /** The first failure after it worked, and the first success after it failed. */
  upstreamFailed(origin: string, reason: string): void
  upstreamRecovered(origin: string): void
  /** Something here is wrong, not the upstream. */
  unexpected(error: Error): void
}

/**
 * The connections to one origin. The one used last is used next, so that few stay open under little
 * load, and what is idle long enough closes itself.
 */
export class Upstream {
  readonly origin: string
  /** For TLS: whom all requests are for, whatever host their clients asked for. */
  readonly serverName: string | undefined
  readonly #options: Client.Options
  readonly #idle: UpstreamClient[] = []
  readonly #clients = new Set<UpstreamClient>()
  readonly #events: UpstreamEvents
  #retired = false
  #failing = false

  constructor(origin: string, timeoutMs: number, events: UpstreamEvents) {
    this.origin = origin
    this.#events = events
    const { protocol, hostname } = new URL(origin)
    this.serverName = protocol === 'https:' ? hostname : undefined
    this.#options = {
      connect: connector(hostname, timeoutMs),
      keepAliveTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: 1000,
    }
  }

  /** A connection that is not in use; a new one where there is none. */
  take(): UpstreamClient {
    return this.#idle.pop() ?? this.open()
  }

  /** A new connection. */
  open(): UpstreamClient {
    const client = new UpstreamClient(this.origin, this.#options)
    client.on('connect', () => {
      client.served = 0
    })
    client.on('disconnect', () => this.#forget(client))
    client.on('error' as 'connect', (error: unknown) => this.#events.unexpected(error as Error))
    this.#clients.add(client)
    return client
  }

  /** Takes back a connection whose answer is complete. */
  release(client: UpstreamClient): void {
    client.served += 1
    if (this.#failing) this.#recovered()
    if (this.#retired) this.discard(client)
    else this.#idle.push(client)
  }

  /** Closes a connection that is not to be used again. */
  discard(client: UpstreamClient): void {
    this.#clients.delete(client)
    // Not now: undici calls us from within its own handling of this connection.
    queueMicrotask(() => void client.destroy().catch(() => {}))
  }

  failed(reason: string): void {
    if (this.#failing) return
    this.#failing = true
    this.#events.upstreamFailed(this.origin, reason)
  }

  /** No route leads here any more: connections close as they become idle. */
  retire(): void {
    this.#retired = true
    for (const client of this.#idle.splice(0)) this.discard(client)
  }

  /** Closes all connections, also those in use. */
  async destroy(): Promise<void> {
    this.#retired = true
    this.#idle.length = 0
    await Promise.all([...this.#clients].map((client) => client.destroy()))
    this.#clients.clear()
  }

  #recovered(): void {
    this.#failing = false
    this.#events.upstreamRecovered(this.origin)
  }

  /** A connection was lost. In use, it opens another for its request; idle, there is nothing to keep. */
  #forget(client: UpstreamClient): void {
    const at = this.#idle.lastIndexOf(client)
    if (at < 0) return
    this.#idle.splice(at, 1)
    this.discard(client)
  }
}

export function connectTimeoutMs(timeoutMs: number): number {
  return Math.min(timeoutMs, CONNECT_TIMEOUT_MS)
}

/**
 * Opens connections. The certificate has to be the upstream's own; undici would ask for one of the host
 * that the request is for.
 */
function connector(hostname: string, timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: connectTimeoutMs(timeoutMs) } as buildConnector.BuildOptions)
  // An address is no name that a server could be asked for (RFC 6066, 3).
  const servername = isIP(hostname.replace(/^\[|\]$/g, '')) ? '' : hostname
  return (options, callback) => connect({ ...options, servername }, callback)
}
