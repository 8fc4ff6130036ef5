import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Readable } from 'node:stream'
import type { Field } from 'headgate/http'
import type { Dispatcher } from 'undici'
import { answerFields } from './answer-fields.ts'
import type { LiveRoute } from './live-routes.ts'
import type { RequestBody } from './request-body.ts'
import type { Upstream, UpstreamClient } from './upstream.ts'

/** What a forwarding needs to know of the request that it carries. */
export interface Carried {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Our own fields of the answer. */
  readonly ours: readonly Field[]
  /** Whether the client's connection ends with this answer. */
  readonly closing: boolean
  /** The rest of the request's body will not be read: the connection cannot be used again. */
  leaveUnread(): void
  /** The head of the upstream's answer is here. */
  started(status: number): void
  /** The upstream gave no answer, and the client got none yet. */
  failed(status: 400 | 502 | 504, detail: string): void
}

/** What is sent to the upstream. */
export interface Outgoing {
  method: string
  path: string
  fields: string[]
  body: RequestBody | undefined
}

/** Methods whose requests change nothing, so that one may be sent again when it was lost. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** undici's words for a connection that the other side closed. */
const LOST: ReadonlySet<string | undefined> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

const CONNECT_TIMEOUT = 'UND_ERR_CONNECT_TIMEOUT'

/** The longest body that is worth copying to save a write, in bytes. */
const ONE_PIECE = 16_384

/** The end of a drain closes the connections to upstreams, which is no failure of theirs. */
const CUT_BY_US = 'UND_ERR_DESTROYED'

/** undici will not write such a request. */
const NOT_SENDABLE: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED'])

/** undici's word for an answer that did not have the length that it announced. */
const OTHER_LENGTH = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'

/** What can be written as a reason as it came; undici read it as UTF-8, and node would write Latin-1. */
const PLAIN = /^[\t\x20-\x7e]*$/

type Failure = Error & { code?: string }

/**
 * One request's way to an upstream and its answer's way back; undici calls it at each step.
 *
 * A request is sent once, with two exceptions that cannot run it twice unless it is safe: a connection
 * that was refused (the next upstream is tried, once), and one that was kept from an earlier request
 * and turns out to be closed (a fresh one is tried, once; if the request was already written, only
 * where nothing came back, the method is safe and there is no body).
 */
export class Forwarding implements Dispatcher.DispatchHandler {
  readonly #carried: Carried
  readonly #route: LiveRoute
  readonly #options: Dispatcher.DispatchOptions & { servername: string | undefined }
  #upstream: Upstream
  #client: UpstreamClient
  #abort: ((reason?: Error) => void) | undefined
  #resume: (() => void) | undefined
  #triedNext = false
  #triedFresh = false
  /** The request is being written to the upstream. */
  #sent = false
  /** The upstream began to answer. */
  #received = false
  /** The client has the head of the answer. */
  #answering = false
  /** Nothing more will happen. */
  #over = false
  /** A status whose answers have no body, whatever length they announce. */
  #bodiless = false
  #length: number | undefined
  /** An answer's whole body, where it came in one piece. */
  #whole: Buffer | undefined
  #flushed = false

  constructor(carried: Carried, route: LiveRoute, outgoing: Outgoing) {
    this.#carried = carried
    this.#route = route
    this.#upstream = route.next()
    this.#client = this.#upstream.take()
    this.#options = {
      method: outgoing.method,
      path: outgoing.path,
      headers: outgoing.fields,
      body: (outgoing.body as unknown as Readable | undefined) ?? null,
      headersTimeout: route.timeoutMs,
      bodyTimeout: route.timeoutMs,
      // With one request a connection there is no pipeline to hold up.
      blocking: false,
      servername: undefined,
    }
  }

  start(): void {
    this.#dispatch(this.#client)
  }

  /** The client is gone: so is the reason to ask the upstream. */
  abort(): void {
    if (this.#over) return
    this.#over = true
    // Not connected yet: onConnect will find out.
    this.#abort?.(new Error('the client closed the connection'))
  }

  onConnect(abort: (reason?: Error) => void): void {
    if (this.#over) {
      abort()
      return
    }
    this.#abort = abort
    this.#sent = true
  }

  onResponseStarted(): void {
    this.#received = true
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, statusText: string): boolean {
    if (status < 200) return true
    const { res, req, ours, closing } = this.#carried
    // An upload that the upstream did not wait for: its rest will not be read.
    const unread = this.#options.body !== null && !req.complete
    if (unread) this.#carried.leaveUnread()
    const { fields, length, coded } = answerFields(raw, status, ours, closing || unread)
    // What is thrown here comes back as onError.
    if (coded) throw new Error('an unknown Transfer-Encoding')
    res.writeHead(status, reasonOf(status, statusText), fields)
    this.#answering = true
    this.#bodiless = status === 204 || status === 304
    this.#length = length
    this.#resume = resume
    this.#carried.started(status)
    process.nextTick(Forwarding.#flush, this)
    return true
  }

  onData(chunk: Buffer): boolean {
    if (!this.#flushed && chunk.length === this.#length) {
      this.#whole = chunk
      return true
    }
    this.#flushed = true
    const { res, req } = this.#carried
    if (res.write(chunk)) return true
    res.once('drain', () => this.#drained())
    // From here on it is the client that is waited for, as long as it reads at all.
    req.socket.setTimeout(this.#route.timeoutMs)
    return false
  }

  onComplete(): void {
    this.#over = true
    this.#flushed = true
    const { res, req } = this.#carried
    if (this.#whole !== undefined && this.#whole.length <= ONE_PIECE) endInOnePiece(res, this.#whole)
    else res.end(this.#whole)
    // What is still to be written waits for the client alone.
    if (res.writableLength > 0) req.socket.setTimeout(this.#route.timeoutMs)
    if (this.#options.body === null || req.complete) this.#upstream.release(this.#client)
    else this.#upstream.discard(this.#client)
  }

  onError(error: Failure): void {
    const client = this.#client
    this.#upstream.discard(client)
    this.#abort = undefined
    if (this.#over) this.#cutUnended()
    else if (this.#answering) this.#broken(error)
    else if (!this.#again(error, client)) this.#fail(error)
  }

  /** The client can take more again. */
  #drained(): void {
    if (this.#over) return
    this.#carried.req.socket.setTimeout(0)
    this.#resume?.()
  }

  #dispatch(client: UpstreamClient): void {
    this.#client = client
    this.#sent = false
    this.#options.servername = this.#upstream.serverName
    client.dispatch(this.#options, this)
  }

  /** Sends the request once more where that cannot run it twice. */
  #again({ code }: Failure, client: UpstreamClient): boolean {
    const kept = client.served > 0
    if (this.#sent) {
      const lost = kept && !this.#received && LOST.has(code)
      return lost && this.#options.body === null && SAFE.has(this.#options.method) && this.#freshly()
    }
    if (code !== undefined && NOT_SENDABLE.has(code)) return false
    if (kept) return this.#freshly()
    this.#upstream.failed(code ?? 'it could not be connected to')
    if (this.#triedNext || !this.#route.severalUpstreams || code === CONNECT_TIMEOUT) return false
    this.#triedNext = true
    this.#upstream = this.#route.after(this.#upstream)
    this.#dispatch(this.#upstream.take())
    return true
  }

  #freshly(): boolean {
    if (this.#triedFresh) return false
    this.#triedFresh = true
    this.#dispatch(this.#upstream.open())
    return true
  }

  #fail({ code, message }: Failure): void {
    this.#over = true
    const carried = this.#carried
    if (code !== undefined && NOT_SENDABLE.has(code)) carried.failed(400, 'The header fields cannot be sent on.')
    else {
      if (code !== CUT_BY_US) this.#upstream.failed(code ?? message)
      if (code === CONNECT_TIMEOUT) carried.failed(504, 'The upstream accepted no connection in time.')
      else if (code === 'UND_ERR_HEADERS_TIMEOUT') carried.failed(504, this.#late())
      else if (this.#sent) carried.failed(502, 'The upstream closed the connection without a valid answer.')
      else carried.failed(502, 'The upstream cannot be connected to.')
    }
  }

  #late(): string {
    return `The upstream did not begin to answer within ${this.#route.timeoutMs} ms.`
  }

  #broken({ code }: Failure): void {
    this.#over = true
    const { res } = this.#carried
    // Such an answer tells the length that another one would have (RFC 9110, 8.6); undici misses the body.
    if (this.#bodiless && code === OTHER_LENGTH) res.end()
    // The answer ends before its end: the client must not take it for whole.
    else res.destroy()
  }

  /** Something was thrown where the answer was to be ended. */
  #cutUnended(): void {
    const { res } = this.#carried
    if (this.#answering && !res.writableEnded) res.destroy()
  }

  /** Sends the head ahead where the body is not there at once. */
  static #flush(forwarding: Forwarding): void {
    if (forwarding.#flushed) return
    forwarding.#flushed = true
    forwarding.#carried.res.flushHeaders()
  }
}

function reasonOf(status: number, text: string): string {
  const usual = STATUS_CODES[status]
  if (text === usual || PLAIN.test(text)) return text
  return usual ?? ''
}

/**
 * As text, a byte a character, node joins the body to the head; ended in the same turn, it would add an
 * empty piece. So the answer leaves in one plain write, not as a list to be gathered.
 */
function endInOnePiece(res: ServerResponse, body: Buffer): void {
  res.write(body.toString('latin1'), 'latin1')
  process.nextTick(end, res)
}

function end(res: ServerResponse): void {
  res.end()
}
