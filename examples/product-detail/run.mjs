// Four gateways on ports 8181 to 8184, on one Redis, in front of one upstream. Ctrl-C stops them.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { startUpstream } from '../quickstart/upstream.mjs'
import { ports } from './ports.mjs'

const bin = fileURLToPath(new URL('../../packages/cli/bin/headgate.js', import.meta.url))
const rules = fileURLToPath(new URL('headgate.yaml', import.meta.url))
const upstream = await startUpstream(0)

const gateways = ports.map((port, i) => {
  const env = {
    ...process.env,
    HEADGATE_PORT: String(port),
    HEADGATE_ADMIN_PORT: String(port + 10),
    UPSTREAM_PORT: String(upstream.address().port),
  }
  const child = spawn(process.execPath, [bin, 'up', '-c', rules], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  createInterface({ input: child.stdout }).on('line', (line) => console.log(`[${i + 1}] ${line}`))
  createInterface({ input: child.stderr }).on('line', (line) => console.error(`[${i + 1}] ${line}`))
  return child
})

const stop = () => {
  for (const child of gateways) child.kill('SIGTERM')
}
// Ctrl-C in a terminal reaches the gateways too: they drain, and this process ends with the last of them.
process.on('SIGINT', () => {})
process.on('SIGTERM', stop)
let left = gateways.length
gateways.forEach((child, i) => {
  // Three gateways would enforce what four share.
  child.on('close', (code, signal) => {
    if (code !== 0 && process.exitCode === undefined) {
      process.exitCode = 1
      console.error(`[${i + 1}] ended (${signal ?? `exit code ${code}`}), so all are stopped`)
      stop()
    }
    left -= 1
    if (left > 0) return
    upstream.close()
    upstream.closeAllConnections()
  })
})
