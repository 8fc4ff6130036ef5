import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
// biome-ignore lint/correctness/noUndeclaredDependencies: only tests load this file
import { onTestFinished } from 'vitest'

/** An upstream on a bare socket, which may behave as badly as a test wants. It stops with its test. */
export class BluntUpstream {
  /** The heads of all requests that arrived, one for each time. */
  readonly heads: string[] = []
  readonly sockets = new Set<Socket>()
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  /** @param onHead called with each request's head */
  static async start(onHead: (socket: Socket, head: string, count: number) => void): Promise<BluntUpstream> {
    const server = createServer()
    const upstream = new BluntUpstream(server)
    server.on('connection', (socket) => {
      upstream.sockets.add(socket)
      let text = ''
      socket.on('error', () => {}).on('close', () => upstream.sockets.delete(socket))
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
          const head = text.slice(0, end)
          text = text.slice(end + 4)
          upstream.heads.push(head)
          onHead(socket, head, upstream.heads.length)
        }
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => upstream.stop())
    return upstream
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }
}

export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
