import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Which of some ports of 127.0.0.1 cannot be listened on, all at once.
 * @param {Record<string, string>} ports  a variable's name and its value
 * @returns {Promise<{ name: string, value: string, code: string, free: number }[]>}  free: one to take instead
 */
export async function busyPorts(ports) {
  const servers = []
  const busy = []
  for (const [name, value] of Object.entries(ports)) {
    const code = await hold(Number(value), servers)
    if (code) busy.push({ name, value, code })
  }
  // While those that are free are held, or one would be proposed twice.
  for (const each of busy) each.free = await freeFrom((Number(each.value) || 8080) + 10, servers)
  for (const server of servers) server.close()
  return busy
}

async function freeFrom(port, servers) {
  for (let next = port; next < 65_536; next++) if (!(await hold(next, servers))) return next
  return freeFrom(8090, servers)
}

/** Listens on a port; the error's code where that fails. */
async function hold(port, servers) {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
    servers.push(server)
  } catch (error) {
    return error.code
  }
}
