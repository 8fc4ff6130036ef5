import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clientAddress, type TrustSettings } from 'headgate/http'

const CONNECTION = Symbol('headgate.connection')

/** How long a refused client may take to read its answer before its connection is torn down. */
const LINGER_MS = 1000

/** With so many requests waiting for their turn, a client's connection is not read. */
const MAX_WAITING = 16

type Known = Socket & { [CONNECTION]?: Connection }

const noHeader = (): undefined => undefined

/** A request of a connection, as the connection needs to know it. */
export interface OpenRequest {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Its turn has come. */
  start(): void
  /** Gives the request up: its client will not get the answer. */
  abandon(): void
  /** The client made no progress for too long. @returns whether that is answered; else the connection has to be cut */
  stalled(): boolean
}

/**
 * A client's connection: what holds for all requests on it is found out once. Requests that come before
 * the answers to earlier ones (pipelining) are served one after the other, so whatever a connection
 * asks for, at most one of its requests is at an upstream.
 */
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
  /** The request that is being answered. */
  current: OpenRequest | undefined
  /** Those behind it. */
  readonly #waiting: OpenRequest[] = []
  #held = false
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

  /** The request that came last. */
  get last(): OpenRequest | undefined {
    return this.#waiting.at(-1) ?? this.current
  }

  /** Serves a request, now or when its turn comes. */
  take(request: OpenRequest): void {
    this.open += 1
    if (this.open > 1) this.#queue(request)
    else {
      this.current = request
      request.start()
    }
  }

  /** Forgets the request that came last, if its turn did not come yet. */
  dropLast(): boolean {
    if (this.#waiting.pop() === undefined) return false
    this.open -= 1
    return true
  }

  /** One request less to answer. */
  answered(): void {
    this.open -= 1
    this.sweeps = 0
    // Between requests nobody is waited for.
    if (this.socket.timeout) this.socket.setTimeout(0)
    // The answer before ended the connection: nobody would get theirs.
    if (this.open > 0 && !this.socket.writable) this.#dropWaiting()
    if (this.open > 0) {
      this.#next()
      return
    }
    this.current = undefined
    const then = this.whenAnswered
    this.whenAnswered = undefined
    then?.()
  }

  /** The socket closed. For requests whose turn did not come, node's server never says so. */
  gone(): void {
    this.#dropWaiting()
    this.current?.abandon()
  }

  /** Nothing moved for as long as the client was given. */
  timedOut(): void {
    if (!this.current?.stalled()) this.socket.destroy()
  }

  /** Writes a whole answer past the server once the answers before it are out, and closes the connection. */
  endAfterAnswers(answer: string): void {
    if (this.open === 0) {
      this.end(answer)
      return
    }
    this.closing = true
    this.whenAnswered = () => this.end(answer)
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

  #queue(request: OpenRequest): void {
    this.#waiting.push(request)
    if (this.#held || this.#waiting.length < MAX_WAITING) return
    this.#held = true
    const { socket } = this
    socket.pause()
    // node's server would go on reading after each request that it parsed from what is here already.
    socket.resume = () => socket
  }

  #next(): void {
    const next = this.#waiting.shift() as OpenRequest
    if (this.#held && this.#waiting.length < MAX_WAITING) this.#release()
    this.current = next
    next.start()
  }

  #release(): void {
    this.#held = false
    Reflect.deleteProperty(this.socket, 'resume')
    this.socket.resume()
  }

  #dropWaiting(): void {
    this.open -= this.#waiting.length
    this.#waiting.length = 0
  }

  #linger(): void {
    const { socket } = this
    socket.end()
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
