import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/** Speaks as much of Redis's protocol as a client and the store need; for errors that no real server can be brought to. */
export interface FakeRedis {
  readonly port: number
  readonly url: string
  /** Every command received, in order. */
  readonly commands: string[][]
  /** Connections made to it so far. */
  readonly connections: number
  /**
   * Decides what a command is answered: bytes of the protocol, `''` for silence, undefined for what a healthy
   * server says (every check is admitted).
   */
  reply: (command: string[], socket: Socket) => string | undefined
  close(): Promise<void>
}

export async function startFakeRedis(): Promise<FakeRedis> {
  const fake = new Fake()
  await fake.listen()
  return fake
}

class Fake implements FakeRedis {
  readonly commands: string[][] = []
  connections = 0
  reply: FakeRedis['reply'] = () => undefined
  private readonly server: Server = createServer((socket) => this.serve(socket))
  private readonly sockets = new Set<Socket>()

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  async listen(): Promise<void> {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
  }

  async close(): Promise<void> {
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
    await once(this.server, 'close')
  }

  private serve(socket: Socket): void {
    this.connections += 1
    this.sockets.add(socket)
    let unread = ''
    socket.on('error', () => undefined)
    socket.on('close', () => this.sockets.delete(socket))
    socket.on('data', (data) => {
      unread += data.toString('latin1')
      for (let read = readCommand(unread); read !== undefined; read = readCommand(unread)) {
        unread = unread.slice(read.length)
        this.commands.push(read.command)
        socket.write(this.reply(read.command, socket) ?? healthy(read.command), 'latin1')
      }
    })
  }
}

function readCommand(text: string): { command: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (head === null) return undefined
  const command: string[] = []
  let at = head[0].length
  for (let i = 0; i < Number(head[1]); i++) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at, at + 20))
    if (size === null) return undefined
    const begin = at + size[0].length
    at = begin + Number(size[1]) + 2
    if (text.length < at) return undefined
    command.push(text.slice(begin, at - 2))
  }
  return { command, length: at }
}

function healthy(command: string[]): string {
  const now = Date.now() * 1000
  switch (command[0]?.toUpperCase()) {
    case 'HELLO':
      // Without an argument it only tells, in a form that both protocols have.
      return command.length > 1 ? '%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n' : `*2\r\n${bulk('version')}${bulk('7.0.0')}`
    case 'INFO':
      return bulk('role:master\r\nloading:0\r\n')
    case 'TIME':
      return `*2\r\n${bulk(`${Math.floor(now / 1e6)}`)}${bulk(`${now % 1e6}`)}`
    case 'SCRIPT':
      return bulk('0'.repeat(40))
    case 'EVALSHA':
      return admitAll(command, now)
    default:
      return '+OK\r\n'
  }
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`

/** Reads a batch as the script does, and admits every check with nothing used. */
function admitAll(command: string[], now: number): string {
  const input = JSON.parse(command[3 + Number(command[2])] as string) as number[]
  const codes = []
  let at = 2
  for (let i = 0; i < (input[1] as number); i++) {
    codes.push(input[at])
    // Its parameters stand behind code and since: three of a token bucket, five of a fixed window.
    at += input[at] === 1 ? 5 : 7
  }
  const reply = [0, now, 0]
  while (at < input.length) {
    const head = input[at++] as number
    reply.push(1)
    for (let part = 0; part < Math.floor(head / 32); part++) {
      const code = codes[Math.floor((input[at] as number) / 4096) - 1]
      reply.push(...(code === 1 ? [0] : [0, now + 1]))
      at += head % 4 >= 2 ? 2 : 1
    }
  }
  return `*${reply.length}\r\n${reply.map((n) => `:${n}\r\n`).join('')}`
}
