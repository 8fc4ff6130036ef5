import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clientAddress, type TrustSettings } from 'headgate/http'

const CONNECTION = Symbol('headgate.connection')

/** How long a refused client may take to read its answer before its connection is torn down. */
const LINGER_MS = 1000

type Known = Socket & { [CONNECTION]?: Connection }

const noHeader = (): undefined => undefined

/** A request of a connection, as the connection needs to know it. */
export interface OpenRequest {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Gives the request up: its client will not get the answer. */
  abandon(): void
}

/** A client's connection: what holds for all requests on it is found out once. */
export class Connection {
  readonly socket: Socket
  /** The remote address as the socket gave it: taken now, since a socket that is gone no longer knows. */
  readonly peerText: string | undefined
  /** The peer's address, canonical, or `unix`. */
  readonly peer: string
  /** Whether the peer may say who the caller is. */
  readonly trusted: boolean
  /** How many requests are not answered yet. */
  open = 0
  /** The request that came last. */
  last: OpenRequest | undefined
  /** Whatever still arrives here is not looked at. */
  closing = false
  /** How often it was found without an open request. */
  sweeps = 0
  /** What had arrived when it was last looked at, in bytes. */
  #bytesSeen = -1
  /** Called once all open requests are answered. */
  whenAnswered: (() => void) | undefined
  /** The last authority and what it means: it hardly ever changes within a connection. */
  authority: string | undefined
  host = ''
  /** The `Forwarded` element for `authority`; empty: not made yet. */
  forwarded = ''

  constructor(socket: Socket, trust: TrustSettings) {
    this.socket = socket
    this.peerText = socket.remoteAddress
    const { ip, trusted } = clientAddress(this.peerText, noHeader, trust)
    this.peer = ip
    this.trusted = trusted
    ;(socket as Known)[CONNECTION] = this
  }

  static of(socket: Socket): Connection | undefined {
    return (socket as Known)[CONNECTION]
  }

  /** Closes it if nobody uses it: no request is open, and nothing arrived since it was last asked. */
  closeUnused(): void {
    const { bytesRead } = this.socket
    if (this.open === 0 && bytesRead === this.#bytesSeen) this.socket.destroy()
    this.#bytesSeen = bytesRead
  }

  /** One request less to answer. */
  answered(): void {
    this.open -= 1
    this.sweeps = 0
    // Between requests nobody is waited for.
    if (this.socket.timeout) this.socket.setTimeout(0)
    if (this.open > 0) return
    this.last = undefined
    const then = this.whenAnswered
    this.whenAnswered = undefined
    then?.()
  }

  /**
   * Closes the connection after the answer, though the client may still send a body that nobody reads.
   * To close it at once would reset it, and the client might lose the answer that is on its way: so the
   * end of the answer is announced, nothing more is read, and the client gets a moment.
   */
  closeUnread(): void {
    this.closing = true
    // node's server calls this when the last answer of a connection is out.
    this.socket.destroySoon = () => this.#linger()
  }

  /** Writes a whole answer past the server, whose parser gave this connection up, and closes it. */
  end(answer: string): void {
    this.closing = true
    if (!this.socket.writable) return
    this.socket.pause()
    this.socket.write(answer, 'latin1')
    this.#linger()
  }

  #linger(): void {
    const { socket } = this
    socket.end()
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
