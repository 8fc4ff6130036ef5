import type { Socket } from 'node:net'
import type { TrustSettings } from 'headgate/http'
import { Connection } from './connection.ts'

/** How often unused connections are looked for. */
const SWEEP_MS = 5000

/**
 * After how many sweeps an unused connection closes: later than the minute after which common load
 * balancers give theirs up, so that it is they who close, and no request meets a closed connection.
 */
const KEPT_SWEEPS = 14

/**
 * The connections of clients. One timer for all of them finds those that nobody uses: node's server
 * would set and clear one around each request.
 */
export class Connections {
  readonly #open = new Set<Connection>()
  #sweep: NodeJS.Timeout | undefined

  add(socket: Socket, trust: TrustSettings): void {
    const connection = new Connection(socket, trust)
    this.#open.add(connection)
    socket.once('close', () => {
      this.#open.delete(connection)
      connection.gone()
    })
    // Where node's server gives a socket up, it takes its own listener off, and an error would end the process.
    socket.on('error', () => {})
    this.#sweep ??= setInterval(() => this.#tick(), SWEEP_MS).unref()
  }

  /** Closes those that nobody used since it was last called. */
  closeUnused(): void {
    for (const connection of this.#open) connection.closeUnused()
  }

  /** Leaves no timer behind. */
  close(): void {
    clearInterval(this.#sweep)
  }

  #tick(): void {
    for (const connection of this.#open) {
      connection.sweeps = connection.open > 0 ? 0 : connection.sweeps + 1
      if (connection.sweeps >= KEPT_SWEEPS) connection.closeUnused()
    }
  }
}
