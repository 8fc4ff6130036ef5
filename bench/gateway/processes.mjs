import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../common/redis.mjs'

const here = import.meta.dirname
const root = join(here, '../..')

/** Starts a contender; `headgate up` is started as its users do. */
export async function start(contender, way, execArgv = []) {
  const rules = RULES[contender]
  return rules === undefined ? startWorker(contender, way, execArgv) : startHeadgate(rules, way, execArgv)
}

export const HEADGATE = 'headgate up'
export const WITH_CANDIDATE = 'headgate up, with a candidate'
const RULES = { [HEADGATE]: 'headgate.yaml', [WITH_CANDIDATE]: 'headgate-candidate.yaml' }

async function startWorker(contender, way, execArgv) {
  const child = fork(join(here, 'worker.mjs'), [JSON.stringify({ ...way, contender })], { execArgv })
  const exited = once(child, 'exit')
  const early = exited.then(() => Promise.reject(new Error(`the process of ${contender} ended early`)))
  early.catch(() => undefined)
  const [{ port }] = await Promise.race([once(child, 'message'), early])
  return {
    port,
    pid: child.pid,
    async stop() {
      child.disconnect()
      await exited
    },
  }
}

async function startHeadgate(rules, { upstream, redisPort }, execArgv) {
  const port = await freePort()
  const adminPort = await freePort()
  const cli = join(root, 'packages/cli/bin/headgate.js')
  const child = spawn(process.execPath, [...execArgv, cli, 'up', '-c', join(here, '..', rules)], {
    env: {
      ...process.env,
      PORT: `${port}`,
      ADMIN_PORT: `${adminPort}`,
      UPSTREAM: upstream,
      REDIS: `redis://127.0.0.1:${redisPort}`,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(child, 'exit')
  const admin = (path) => fetch(`http://127.0.0.1:${adminPort}${path}`)
  try {
    await ready(child, admin)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return {
    port,
    pid: child.pid,
    /** The decisions so far that were not the store's. */
    async wrong() {
      const text = await (await admin('/metrics')).text()
      const counts = text.matchAll(/^headgate_decisions_total\{([^}]*)\} (\S+)$/gm)
      const others = [...counts].filter(
        ([, labels]) => !/source="store"/.test(labels) || !/outcome="allowed"/.test(labels),
      )
      return others.reduce((total, [, , count]) => total + Number(count), 0)
    },
    async stop() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

async function ready(child, admin) {
  for (let attempt = 0; attempt < 400; attempt++) {
    const state = await admin('/readyz').then(
      (response) => response.json(),
      () => undefined,
    )
    // Degraded: it listens already, and Redis is not connected yet.
    if (state && !state.degraded) return
    if (child.exitCode !== null) break
    await sleep(50)
  }
  throw new Error('headgate up does not get ready; what it said stands above')
}

/** CPU time that a process has used so far, in µs, all its threads; Linux only, where it is exact to the ns. */
export function cpuUs(pid) {
  const threads = readdirSync(`/proc/${pid}/task`)
  const ns = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  )
  return ns.reduce((total, each) => total + each, 0) / 1000
}
