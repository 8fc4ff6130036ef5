import { connect, type Socket } from 'node:net'
// biome-ignore lint/correctness/noUndeclaredDependencies: only tests load this file
import { onTestFinished } from 'vitest'

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number
  /** Names in lower case, and values, one pair for each line. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** The value of a field that must not stand there twice. */
  field(name: string): string | undefined
}

/** A bare socket to the gateway: nothing between a test and the wire makes its bytes any nicer. */
export class RawConnection {
  readonly socket: Socket
  readonly #pieces: Buffer[] = []
  #length = 0
  #closed = false
  #wake = (): void => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#pieces.push(chunk)
      this.#length += chunk.length
      this.#wake()
    })
    socket.on('error', () => {})
    const closed = (): void => {
      this.#closed = true
      this.#wake()
    }
    socket.on('close', closed).on('end', closed)
  }

  /** @param address as the gateway tells it: `http://host:port` or `unix:path` */
  static async open(address: string, localAddress?: string): Promise<RawConnection> {
    const socket = address.startsWith('unix:')
      ? connect(address.slice('unix:'.length))
      : connect(tcp(address, localAddress))
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    onTestFinished(() => {
      socket.destroy()
    })
    return new RawConnection(socket)
  }

  get bytesReceived(): number {
    return this.#length
  }

  write(data: string | Buffer): void {
    this.socket.write(data, 'latin1')
  }

  /** The next whole answer; 1xx answers too. `head`: it answers a HEAD request. */
  async answer({ head = false } = {}): Promise<RawAnswer> {
    const end = await this.#until(() => this.#received.indexOf('\r\n\r\n'))
    const [statusLine = '', ...lines] = this.#take(end + 4)
      .toString('latin1', 0, end)
      .split('\r\n')
    const status = Number(statusLine.split(' ')[1])
    const fields = lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    })
    const field = (name: string): string | undefined => {
      const values = fields.filter(([key]) => key === name).map(([, value]) => value)
      if (values.length > 1) throw new Error(`${name} stands there ${values.length} times: ${values.join(' | ')}`)
      return values[0]
    }
    const bodiless = head || status < 200 || status === 204 || status === 304
    const body = bodiless ? Buffer.alloc(0) : await this.#body(field)
    return { status, fields, body, field }
  }

  /** Resolves when the other side closed, with all bytes that were not read. */
  async closed(): Promise<Buffer> {
    await this.#until(() => (this.#closed ? 0 : -1))
    return this.#received
  }

  close(): void {
    this.socket.destroy()
  }

  /** Breaks the connection as a crashed client would. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  async #body(field: (name: string) => string | undefined): Promise<Buffer> {
    if (field('transfer-encoding') === 'chunked') return this.#chunks()
    const length = field('content-length')
    if (length === undefined) {
      await this.#until(() => (this.#closed ? 0 : -1))
      return this.#take(this.#length)
    }
    return this.#bytes(Number(length))
  }

  async #chunks(): Promise<Buffer> {
    const chunks: Buffer[] = []
    for (;;) {
      const end = await this.#until(() => this.#received.indexOf('\r\n'))
      const size = Number.parseInt(this.#take(end + 2).toString('latin1'), 16)
      chunks.push((await this.#bytes(size + 2)).subarray(0, size))
      if (size === 0) return Buffer.concat(chunks)
    }
  }

  async #bytes(count: number): Promise<Buffer> {
    await this.#until(() => (this.#length >= count ? 0 : -1))
    return this.#take(count)
  }

  #take(count: number): Buffer {
    const all = this.#received
    this.#pieces[0] = all.subarray(count)
    this.#length -= count
    return all.subarray(0, count)
  }

  /** Put together only when it is looked at. */
  get #received(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces.splice(0, this.#pieces.length, Buffer.concat(this.#pieces))
    return this.#pieces[0] as Buffer
  }

  /** Waits until the test gives 0 or more. */
  async #until(test: () => number): Promise<number> {
    for (;;) {
      const found = test()
      if (found >= 0) return found
      if (this.#closed)
        throw new Error(`the connection closed; unread: ${JSON.stringify(this.#received.toString('latin1', 0, 300))}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

function tcp(address: string, localAddress: string | undefined) {
  const { hostname, port } = new URL(address)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), ...(localAddress ? { localAddress } : {}) }
}

/** Sends one request on a connection of its own. */
export async function ask(address: string, request: string, options?: { head?: boolean }): Promise<RawAnswer> {
  const connection = await RawConnection.open(address)
  connection.write(request)
  try {
    return await connection.answer(options)
  } finally {
    connection.close()
  }
}

/** A request without a body. */
export function get(target: string, fields: readonly string[] = [], method = 'GET'): string {
  return `${[`${method} ${target} HTTP/1.1`, 'Host: shop.example', ...fields].join('\r\n')}\r\n\r\n`
}
