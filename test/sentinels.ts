import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis-6'
import { freePort, type RedisServer, startRedis } from './redis.ts'

/** One master, one replica and three Sentinels, all real, on loopback. */
export interface Sentinels {
  /** Of the master, as Sentinels know it. */
  readonly name: string
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly master: RedisServer
  readonly replica: RedisServer
  /** The port that a Sentinel names. */
  masterPort(): Promise<number>
  stop(): Promise<void>
}

/** @param password of both servers; the Sentinels have none */
export async function startSentinels(password: string): Promise<Sentinels> {
  const name = 'main'
  const login = ['--requirepass', password, '--masterauth', password, '--repl-diskless-sync-delay', '0']
  const master = await startRedis(login)
  const replica = await startRedis([...login, '--replicaof', '127.0.0.1', `${master.port}`])
  const folder = mkdtempSync(join(tmpdir(), 'headgate-sentinel-'))
  const ports = [await freePort(), await freePort(), await freePort()]
  const lines = (port: number) =>
    `port ${port}
bind 127.0.0.1
dir ${folder}
sentinel monitor ${name} 127.0.0.1 ${master.port} 2
sentinel auth-pass ${name} ${password}
sentinel down-after-milliseconds ${name} 500
sentinel failover-timeout ${name} 3000
`
  const children = ports.map((port) => {
    // It keeps what it learns in its file.
    const file = join(folder, `${port}.conf`)
    writeFileSync(file, lines(port))
    return spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' })
  })
  for (const port of ports) await waitUntilKnown(port, name)
  return {
    name,
    nodes: ports.map((port) => ({ host: '127.0.0.1', port })),
    master,
    replica,
    masterPort: async () => Number((await ask(ports[0] as number, name)).get('port')),
    async stop() {
      for (const child of children) {
        child.kill('SIGKILL')
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      }
      await Promise.all([master.stop(), replica.stop()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What a Sentinel says of the master. */
async function ask(port: number, name: string): Promise<Map<string, string>> {
  const redis = new Redis({ port, lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    const pairs = (await redis.call('SENTINEL', 'MASTER', name)) as string[] | Record<string, string>
    if (!Array.isArray(pairs)) return new Map(Object.entries(pairs))
    return new Map(pairs.flatMap((key, i) => (i % 2 === 0 ? [[key, pairs[i + 1] as string] as const] : [])))
  } finally {
    redis.disconnect()
  }
}

/** It knows the replica and the other Sentinels: a failover is possible. */
async function waitUntilKnown(port: number, name: string): Promise<void> {
  for (let attempt = 0; attempt < 400; attempt++) {
    const seen = await ask(port, name).catch(() => new Map<string, string>())
    if (seen.get('num-slaves') === '1' && seen.get('num-other-sentinels') === '2' && seen.get('flags') === 'master')
      return
    await sleep(25)
  }
  throw new Error(`the Sentinel on port ${port} does not find the others`)
}
