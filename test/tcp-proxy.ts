import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A network between a client and a server that can be made to fail. */
export interface TcpProxy {
  readonly port: number
  /** Connections made to it so far. */
  readonly connections: number
  /** How long each byte is on its way from now on, in either direction, in ms; what is on its way arrives at once. */
  delay(ms: number): void
  /** From now on everything is swallowed, without an RST or a FIN: also what new connections send. */
  drop(): void
  /** The same for the connections that there are, as when a router forgot them; new ones work. */
  forget(): void
  /** What is sent from now on gets through again; what was swallowed stays lost, so its connections end. */
  restore(): void
  /** New connections go to another server; those that are there stay where they are. */
  redirect(port: number): void
  /** Cuts every connection. */
  cut(): void
  /** Cuts the connections as soon as the server was sent something, before it can answer. */
  cutAfterNextWrite(): void
  /** Nobody listens any more: connections are refused. */
  refuse(): Promise<void>
  /** Listens again. */
  accept(): Promise<void>
  close(): Promise<void>
}

/** @param port the server's, on this machine */
export async function startProxy(port: number): Promise<TcpProxy> {
  const proxy = new Wire(port)
  await proxy.accept()
  return proxy
}

class Wire implements TcpProxy {
  connections = 0
  private latencyMs = 0
  /** What is on its way, in order. */
  private readonly underway = new Map<NodeJS.Timeout, () => void>()
  private target: number
  private readonly pairs = new Set<Pair>()
  private server: Server | undefined
  private listening = 0
  private dropping = false
  private cutting = false

  constructor(target: number) {
    this.target = target
  }

  get port(): number {
    return this.listening
  }

  async accept(): Promise<void> {
    const server = createServer((socket) => this.pair(socket)).listen(this.listening, '127.0.0.1')
    await once(server, 'listening')
    this.listening = (server.address() as AddressInfo).port
    this.server = server
  }

  delay(ms: number): void {
    this.latencyMs = ms
    const arrivals = [...this.underway]
    this.underway.clear()
    for (const [timer, arrive] of arrivals) {
      clearTimeout(timer)
      arrive()
    }
  }

  drop(): void {
    this.dropping = true
    this.forget()
  }

  forget(): void {
    for (const pair of this.pairs) pair.swallows = true
  }

  restore(): void {
    this.dropping = false
    for (const pair of this.pairs) if (pair.swallows) pair.destroy()
  }

  redirect(port: number): void {
    this.target = port
  }

  cut(): void {
    for (const pair of this.pairs) pair.destroy()
  }

  cutAfterNextWrite(): void {
    this.cutting = true
  }

  async refuse(): Promise<void> {
    const server = this.server
    this.server = undefined
    this.cut()
    if (server === undefined) return
    server.close()
    await once(server, 'close')
  }

  close(): Promise<void> {
    return this.refuse()
  }

  private pair(client: Socket): void {
    this.connections += 1
    const server = connect(this.target, '127.0.0.1')
    const pair: Pair = {
      swallows: this.dropping,
      destroy: () => {
        client.destroy()
        server.destroy()
        this.pairs.delete(pair)
      },
    }
    this.pairs.add(pair)
    this.forward(client, server, pair, true)
    this.forward(server, client, pair, false)
  }

  private forward(from: Socket, to: Socket, pair: Pair, toServer: boolean): void {
    from.setNoDelay(true)
    const later = (arrive: () => void) => {
      if (this.latencyMs === 0) {
        arrive()
        return
      }
      const timer = setTimeout(() => {
        this.underway.delete(timer)
        arrive()
      }, this.latencyMs)
      this.underway.set(timer, arrive)
    }
    from.on('data', (data) => {
      if (pair.swallows) return
      later(() => {
        if (to.destroyed) return
        to.write(data, () => {
          if (!toServer || !this.cutting) return
          this.cutting = false
          // The server has it, and time to run it; the answer finds nobody.
          from.destroy()
          setTimeout(() => pair.destroy(), 50)
        })
      })
    })
    from.on('error', () => undefined)
    from.on('close', () => {
      if (!pair.swallows) later(() => pair.destroy())
    })
  }
}

interface Pair {
  swallows: boolean
  destroy(): void
}
