// The Redis that everything here shares: its own, on loopback, keeping nothing on disk.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

/** A loopback port that was free a moment ago. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/** @param settings further ones, such as `'--cluster-enabled', 'yes'` */
export async function startRedis(onPort, settings = []) {
  const port = onPort ?? (await freePort())
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder]
  const child = spawn('redis-server', [...args, ...settings], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  // Its retries also wait for the server to come up.
  const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: 100 })
  client.on('error', () => undefined)
  await Promise.race([client.ping(), exited.then(() => Promise.reject(new Error('redis-server does not start')))])
  const version = /redis_version:(\S+)/.exec(await client.info('server'))[1]

  async function sum(section, fields) {
    const info = await client.info(section)
    return fields.reduce((total, field) => total + Number(new RegExp(`${field}:(\\S+)`).exec(info)[1]), 0)
  }

  return {
    port,
    client,
    version,
    /**
     * CPU time that the server's main thread has used so far, in µs, user and system. Its other threads
     * give back memory, also that of whoever was measured before.
     */
    cpuUs: async () => 1e6 * (await sum('cpu', ['used_cpu_user_main_thread', 'used_cpu_sys_main_thread'])),
    /** What it has read from sockets and written to them so far, in bytes. */
    wireBytes: () => sum('stats', ['total_net_input_bytes', 'total_net_output_bytes']),
    /** What it has allocated, in bytes. */
    usedBytes: () => sum('memory', ['used_memory']),
    /** Empties it; its own threads are done with that when this returns. */
    flush: () => client.flushall('SYNC'),
    async stop() {
      client.disconnect()
      child.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
