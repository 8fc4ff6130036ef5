import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { HEADGATE_BIN } from '../fresh-build.ts'
import { freePort } from '../redis.ts'

export const RULES = fileURLToPath(new URL('../../examples/product-detail/headgate.yaml', import.meta.url))
const DECISION_LOG = new URL('./decision-log.mjs', import.meta.url).href

/** A test that runs out of time never ends its fleet. */
const started = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of started) child.kill('SIGKILL')
})

/** One decision of one gateway, as its diagnostics channel told it. */
export interface Logged {
  readonly atUs: number
  readonly allowed: boolean
  /** Absent where the rule counts no users. */
  readonly user?: string
  readonly rule: string
  readonly source: string
  readonly limitedBy: string | null
}

/** Gateway processes on one store in front of one upstream. */
export interface Fleet {
  readonly ports: readonly number[]
  /** Requests that reached the upstream. */
  served(): number
  /** Ends the gateways by SIGTERM; resolves with all their decisions in the order of the store's clock. */
  finish(): Promise<Logged[]>
}

export async function startFleet(gateways: number, storeUrl: string): Promise<Fleet> {
  let served = 0
  const upstream = createServer((_request, response) => {
    served += 1
    response.end('ok')
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-proof-'))
  const running = await Promise.all(
    Array.from({ length: gateways }, (_, i) => startGateway(join(folder, `${i}.log`), storeUrl, upstream)),
  )
  return {
    ports: running.map(({ port }) => port),
    served: () => served,
    async finish() {
      await Promise.all(running.map(({ child }) => end(child)))
      upstream.closeAllConnections()
      upstream.close()
      const all = running.flatMap(({ log }) => readLog(log))
      rmSync(folder, { recursive: true, force: true })
      return all.sort((a, b) => a.atUs - b.atUs)
    },
  }
}

async function startGateway(log: string, storeUrl: string, upstream: Server) {
  const port = await freePort()
  const child = spawn(process.execPath, ['--import', DECISION_LOG, HEADGATE_BIN, 'up', '-c', RULES], {
    env: {
      ...process.env,
      DECISION_LOG: log,
      HEADGATE_STORE: storeUrl,
      // Four gateways, Redis, the upstream and the load share two cores here: a process that is not run for
      // 50 ms would decide without the store, as it should, and the proof is of what the store decides.
      HEADGATE_TIMEOUT: '1s',
      HEADGATE_PORT: `${port}`,
      HEADGATE_ADMIN_PORT: `${await freePort()}`,
      UPSTREAM_PORT: `${(upstream.address() as AddressInfo).port}`,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  started.add(child)
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)
    if (answer !== undefined) return { child, port, log }
    if (child.exitCode !== null) throw new Error(`a gateway ended with code ${child.exitCode}`)
    await sleep(50)
  }
  throw new Error(`the gateway on port ${port} does not answer`)
}

async function end(child: ChildProcess): Promise<void> {
  started.delete(child)
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  const [code] = await exit
  if (code !== 0) throw new Error(`a gateway ended with code ${code} after SIGTERM`)
}

function readLog(file: string): Logged[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const [atUs, allowed, user, rule, source, limitedBy] = JSON.parse(line)
      return { atUs, allowed, user, rule, source, limitedBy }
    })
}
