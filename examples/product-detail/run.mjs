// Four gateways on ports 8081 to 8084, on one Redis, in front of one upstream. Ctrl-C stops them.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { startUpstream } from '../quickstart/upstream.mjs'

const bin = fileURLToPath(new URL('../../packages/cli/bin/headgate.js', import.meta.url))
const rules = fileURLToPath(new URL('headgate.yaml', import.meta.url))
const upstream = await startUpstream(0)

const gateways = [1, 2, 3, 4].map((n) => {
  const env = {
    ...process.env,
    HEADGATE_PORT: String(8080 + n),
    HEADGATE_ADMIN_PORT: String(8090 + n),
    UPSTREAM_PORT: String(upstream.address().port),
  }
  const child = spawn(process.execPath, [bin, 'up', '-c', rules], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  createInterface({ input: child.stdout }).on('line', (line) => console.log(`[${n}] ${line}`))
  return child
})

// Ctrl-C in a terminal reaches the gateways too: they drain, and this process ends with the last of them.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {
  for (const child of gateways) child.kill('SIGTERM')
})
let left = gateways.length
for (const child of gateways) {
  child.on('exit', () => {
    left -= 1
    if (left > 0) return
    upstream.close()
    upstream.closeAllConnections()
  })
}
