import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A real Redis of a test's own, on a loopback port, that keeps nothing on disk. */
export interface RedisServer {
  readonly port: number
  readonly url: string
  /** Runs one command on a connection of its own; answers as RESP text. For arrays use a client. */
  command(...args: string[]): Promise<string>
  pause(): void
  resume(): void
  /** kill −9: what it held is lost. */
  kill(): Promise<void>
  /** Starts it again on the same port. @param args settings beside those it was made with */
  start(...args: string[]): Promise<void>
  stop(): Promise<void>
}

/** A loopback port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/**
 * @param args further settings, such as `'--maxmemory', '1mb'`
 * @param program another server than the system's, of `test/redis-servers.ts`
 */
export async function startRedis(
  args: readonly string[] = [],
  port?: number,
  program = 'redis-server',
): Promise<RedisServer> {
  const server = new Server(port ?? (await freePort()), args, program)
  await server.start()
  return server
}

class Server implements RedisServer {
  readonly port: number
  private readonly args: readonly string[]
  private readonly program: string
  private readonly folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'))
  private child: ChildProcess | undefined

  constructor(port: number, args: readonly string[], program: string) {
    this.port = port
    this.args = args
    this.program = program
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  async start(...args: string[]): Promise<void> {
    const own = [
      '--port',
      `${this.port}`,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      this.folder,
    ]
    const child = spawn(this.program, [...own, ...this.args, ...args], { stdio: 'ignore' })
    let failure: Error | undefined
    child.on('error', (error) => {
      failure = new Error(
        `${this.program} does not start: ${error.message}; npm test installs it (Debian: apt-get install redis-server)`,
      )
    })
    this.child = child
    for (let attempt = 0; attempt < 200; attempt++) {
      if (failure) throw failure
      const answer = await this.command('PING').catch(() => '')
      if (answer !== '') return
      await sleep(25)
    }
    throw new Error(`redis-server on port ${this.port} does not answer`)
  }

  async command(...args: string[]): Promise<string> {
    const socket = connect(this.port, '127.0.0.1')
    try {
      socket.write(`*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`)
      const [data] = (await once(socket, 'data')) as [Buffer]
      return data.toString().trimEnd()
    } finally {
      socket.destroy()
    }
  }

  pause(): void {
    this.child?.kill('SIGSTOP')
  }

  resume(): void {
    this.child?.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    const child = this.child
    this.child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
