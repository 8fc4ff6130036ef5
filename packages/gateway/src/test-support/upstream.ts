import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
// biome-ignore lint/correctness/noUndeclaredDependencies: only tests load this file
import { onTestFinished } from 'vitest'

export type Answering = (req: IncomingMessage, res: ServerResponse) => void

/** A request as the upstream saw it. */
export interface SeenRequest {
  readonly method: string
  readonly target: string
  readonly rawHeaders: readonly string[]
  /** The values of a field, in the order of arrival. */
  values(name: string): string[]
}

/** A real HTTP server behind the gateway, which remembers what reached it. It stops with its test. */
export class TestUpstream {
  readonly seen: SeenRequest[] = []
  answering: Answering
  readonly server: Server
  /** How many requests are being answered. */
  open = 0
  connections = 0

  private constructor(answering: Answering) {
    this.answering = answering
    this.server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
      this.seen.push(seenOf(req))
      this.open += 1
      res.on('close', () => {
        this.open -= 1
      })
      this.answering(req, res)
    })
    this.server.on('connection', () => {
      this.connections += 1
    })
  }

  static async start(answering: Answering = echo, port = 0): Promise<TestUpstream> {
    const upstream = new TestUpstream(answering)
    await new Promise<void>((resolve) => upstream.server.listen(port, '127.0.0.1', resolve))
    onTestFinished(() => upstream.stop())
    return upstream
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get last(): SeenRequest {
    const last = this.seen.at(-1)
    if (!last) throw new Error('nothing reached the upstream')
    return last
  }

  async stop(): Promise<void> {
    if (!this.server.listening) return
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}

function seenOf(req: IncomingMessage): SeenRequest {
  const { rawHeaders } = req
  return {
    method: req.method as string,
    target: req.url as string,
    rawHeaders,
    values: (name) => rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name),
  }
}

/** Answers with the method and the target, once the body is read. */
export function echo(req: IncomingMessage, res: ServerResponse): void {
  req.resume().on('end', () => res.end(`${req.method} ${req.url}`))
}
