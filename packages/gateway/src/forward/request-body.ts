import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'

/**
 * A request's body on its way to an upstream, in the form in which undici reads a stream.
 *
 * It is not the request itself, because undici destroys what it reads when an upstream answers early
 * or goes away, and with the request would go the client's connection, before the answer is out.
 * Nothing is read before the upstream is ready for it.
 */
export class RequestBody extends EventEmitter {
  destroyed = false
  readonly #request: IncomingMessage
  readonly #idleMs: number
  readonly #onFirstRead: (() => void) | undefined
  #reading = false

  /**
   * @param idleMs how long the client may pause while it is waited for
   * @param onFirstRead called when the upstream wants the body
   */
  constructor(request: IncomingMessage, idleMs: number, onFirstRead: (() => void) | undefined) {
    super()
    this.#request = request
    this.#idleMs = idleMs
    this.#onFirstRead = onFirstRead
  }

  /** undici recognises a stream by its having this; it never calls it. */
  pipe(): never {
    throw new Error('a request body is read by its events')
  }

  pause(): this {
    this.#request.pause()
    // It is the upstream now that is waited for, not the client.
    this.#request.socket.setTimeout(0)
    return this
  }

  resume(): this {
    if (!this.#reading) this.#start()
    this.#request.resume()
    this.#request.socket.setTimeout(this.#idleMs)
    return this
  }

  /** Lets go of the request, of which more may still come. */
  destroy(): this {
    if (this.destroyed) return this
    this.destroyed = true
    if (this.#reading) {
      this.#request.off('data', this.#onData).off('end', this.#onEnd).pause()
      this.#request.socket?.setTimeout(0)
    }
    return this
  }

  #start(): void {
    this.#reading = true
    this.#request.on('data', this.#onData).on('end', this.#onEnd)
    this.#onFirstRead?.()
  }

  readonly #onData = (chunk: Buffer): void => {
    this.emit('data', chunk)
  }

  readonly #onEnd = (): void => {
    this.#request.socket?.setTimeout(0)
    this.emit('end')
  }
}
