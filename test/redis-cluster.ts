import { execFile } from 'node:child_process'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type RedisServer, startRedis } from './redis.ts'

const run = promisify(execFile)

/** How long a master must be silent until a replica takes over, in ms. */
const NODE_TIMEOUT_MS = 1000
const SLOTS = 16_384

/** A real cluster of a test's own on loopback: three masters, three replicas. */
export interface ClusterOfRedis {
  readonly servers: readonly RedisServer[]
  /** The servers that keep slots now. */
  masters(): Promise<RedisServer[]>
  /** The server that keeps a slot now. */
  ownerOf(slot: number): Promise<RedisServer>
  /** Runs a command on each master; answers as RESP text. */
  onMasters(...args: string[]): Promise<string[]>
  /** Begins a move of a slot; between the two calls both sides have a part of its keys. */
  startMove(slot: number, to: RedisServer): Promise<void>
  /** Moves a number of the slot's keys. */
  moveKeys(slot: number, to: RedisServer, count: number): Promise<number>
  endMove(slot: number, to: RedisServer): Promise<void>
  /** Until every slot has a master that answers, and every master says so. */
  settled(): Promise<void>
  stop(): Promise<void>
}

/** @param args further settings of each server */
export async function startRedisCluster(args: readonly string[] = [], replicas = 1): Promise<ClusterOfRedis> {
  const servers: RedisServer[] = []
  try {
    for (let i = 0; i < 3 * (1 + replicas); i++) servers.push(await startNode(args))
    const addresses = servers.map(({ port }) => `127.0.0.1:${port}`)
    const login = passwordIn(args)
    await run('redis-cli', [
      ...login,
      ...['--cluster', 'create', ...addresses],
      ...['--cluster-replicas', `${replicas}`, '--cluster-yes'],
    ])
    const cluster = new Cluster(servers)
    await cluster.settled()
    return cluster
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()))
    throw error
  }
}

function passwordIn(args: readonly string[]): string[] {
  const at = args.indexOf('--requirepass')
  return at < 0 ? [] : ['-a', args[at + 1] as string, '--no-auth-warning']
}

async function startNode(args: readonly string[]): Promise<RedisServer> {
  return startRedis(
    [
      ...['--cluster-enabled', 'yes', '--cluster-node-timeout', `${NODE_TIMEOUT_MS}`],
      ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
      ...args,
    ],
    await portPair(),
  )
}

/** A port whose bus port, 10,000 above, is free too; both below those that the system hands out. */
async function portPair(): Promise<number> {
  for (;;) {
    const port = 11_000 + Math.floor(Math.random() * 10_000)
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', () => resolve(true))
  })
}

class Cluster implements ClusterOfRedis {
  readonly servers: readonly RedisServer[]

  constructor(servers: readonly RedisServer[]) {
    this.servers = servers
  }

  async masters(): Promise<RedisServer[]> {
    const owners = await this.ranges()
    return this.servers.filter(({ port }) => owners.some((range) => range.port === port))
  }

  async ownerOf(slot: number): Promise<RedisServer> {
    const range = (await this.ranges()).find(({ first, last }) => first <= slot && slot <= last)
    return this.at(range?.port)
  }

  async onMasters(...args: string[]): Promise<string[]> {
    const masters = await this.masters()
    return Promise.all(masters.map((master) => master.command(...args)))
  }

  async startMove(slot: number, to: RedisServer): Promise<void> {
    const from = await this.ownerOf(slot)
    await to.command('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', await idOf(from))
    await from.command('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', await idOf(to))
  }

  async moveKeys(slot: number, to: RedisServer, count: number): Promise<number> {
    const from = await this.ownerOf(slot)
    const reply = await from.command('CLUSTER', 'GETKEYSINSLOT', `${slot}`, `${count}`)
    const keys = reply.split('\r\n').filter((_, line) => line > 0 && line % 2 === 0)
    if (keys.length > 0) await from.command('MIGRATE', '127.0.0.1', `${to.port}`, '', '0', '1000', 'KEYS', ...keys)
    return keys.length
  }

  async endMove(slot: number, to: RedisServer): Promise<void> {
    const id = await idOf(to)
    await to.command('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', id)
    for (const master of await this.masters()) await master.command('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', id)
  }

  async settled(): Promise<void> {
    for (let attempt = 0; attempt < 600; attempt++) {
      if (await this.isWhole().catch(() => false)) return
      await sleep(25)
    }
    throw new Error('the cluster does not come up')
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()))
  }

  private async isWhole(): Promise<boolean> {
    const views = await Promise.all(
      this.servers.map(async (server) => {
        const info = await server.command('CLUSTER', 'INFO').catch(() => 'gone')
        return info === 'gone' || info.includes('cluster_state:ok')
      }),
    )
    const ranges = await this.ranges()
    const covered = ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0)
    const answers = await Promise.all(ranges.map(({ port }) => this.at(port).command('PING')))
    return views.every(Boolean) && covered === SLOTS && answers.every((answer) => answer === '+PONG')
  }

  private at(port: number | undefined): RedisServer {
    const server = this.servers.find((each) => each.port === port)
    if (server === undefined) throw new Error(`no server of the cluster listens on ${port}`)
    return server
  }

  /** Who keeps what, as the first that answers sees it. */
  private async ranges(): Promise<{ first: number; last: number; port: number }[]> {
    for (const server of this.servers) {
      const nodes = await server.command('CLUSTER', 'NODES').catch(() => '')
      if (!nodes.startsWith('$')) continue
      return nodes
        .split('\n')
        .filter((line) => line.includes('master') && !/\bfail\b/.test(line))
        .flatMap((line) => {
          const [, address = '', , , , , , , ...slots] = line.trim().split(' ')
          const port = Number(/:(\d+)/.exec(address)?.[1])
          return slots
            .filter((range) => /^\d/.test(range))
            .map((range) => {
              const [first = '', last = first] = range.split('-')
              return { first: Number(first), last: Number(last), port }
            })
        })
    }
    throw new Error('no server of the cluster answers')
  }
}

async function idOf(server: RedisServer): Promise<string> {
  return ((await server.command('CLUSTER', 'MYID')).split('\r\n')[1] ?? '').trim()
}
