// A cluster of three masters on this machine, which looks to a run like one Redis: what it used is the sum over its nodes.
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, startRedis } from './redis.mjs'

const SLOTS = 16_384
const MASTERS = 3

export async function startCluster() {
  const nodes = []
  const buses = []
  const each = (work) => Promise.all(nodes.map(work))
  const sum = async (of) => (await each(of)).reduce((total, value) => total + value, 0)
  const stop = () => each((node) => node.stop())
  try {
    for (let i = 0; i < MASTERS; i++) {
      buses.push(await freePort())
      nodes.push(await startRedis(undefined, ['--cluster-enabled', 'yes', '--cluster-port', `${buses[i]}`]))
    }
    await join(nodes, buses)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port: nodes[0].port,
    version: nodes[0].version,
    cpuUs: () => sum((node) => node.cpuUs()),
    wireBytes: () => sum((node) => node.wireBytes()),
    flush: () => each((node) => node.flush()),
    stop,
  }
}

async function join(nodes, buses) {
  const [{ client }] = nodes
  for (const [i, node] of nodes.entries()) {
    const from = Math.floor((i * SLOTS) / MASTERS)
    const to = Math.floor(((i + 1) * SLOTS) / MASTERS) - 1
    await node.client.call('CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to}`)
    if (i > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', `${node.port}`, `${buses[i]}`)
  }
  for (let attempt = 0; attempt < 400; attempt++) {
    const infos = await Promise.all(nodes.map((node) => node.client.call('CLUSTER', 'INFO')))
    const whole = (info) => info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${MASTERS}`)
    if (infos.every(whole)) return
    await sleep(25)
  }
  throw new Error('the cluster does not come up')
}
