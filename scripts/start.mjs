// `npm start`: runs the gateway with examples/quickstart/headgate.yaml in front of a small demo upstream.
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startUpstream } from '../examples/quickstart/upstream.mjs'
import { build } from './build.mjs'
import { fail, install, isOnPath, root } from './setup.mjs'

const config = 'examples/quickstart/headgate.yaml'
const { HEADGATE_STORE: store, HEADGATE_PORT: port = '8080', HEADGATE_ADMIN_PORT: adminPort = '8083' } = process.env
const gateway = `http://127.0.0.1:${port}`
const admin = `http://127.0.0.1:${adminPort}`

/** Before a minute of installing and building, not after it. */
async function assertFree(name, value) {
  const server = createServer()
  const problem = await new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(Number(value), '127.0.0.1', resolve)
  }).catch((error) => error)
  server.close()
  if (problem)
    fail(
      `Port ${value} of 127.0.0.1 cannot be used (${problem.code}). Choose another: ${name}=${Number(value) + 10 || 8090} npm start`,
    )
}

await assertFree('HEADGATE_PORT', port)
await assertFree('HEADGATE_ADMIN_PORT', adminPort)
await install()
await build()

const upstream = await startUpstream(0)
const upstreamPort = upstream.address().port
const child = spawn(process.execPath, ['packages/cli/bin/headgate.js', 'up', '-c', config], {
  cwd: root,
  env: { ...process.env, UPSTREAM_PORT: String(upstreamPort) },
  stdio: 'inherit',
})

// The gateway drains, then everything ends with it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill('SIGTERM'))
child.on('exit', (code) => {
  upstream.close()
  upstream.closeAllConnections()
  process.exitCode = code ?? 0
})

while (child.exitCode === null && !(await isReady())) await sleep(100)
if (child.exitCode === null) console.log(welcome())

async function isReady() {
  return fetch(`${admin}/readyz`).then(
    (response) => response.ok,
    () => false,
  )
}

function welcome() {
  const curl = isOnPath('curl') ? 'curl' : 'node examples/quickstart/curl.mjs'
  // A command to paste must not hold a password.
  const onStore = store && !store.includes('@') ? `HEADGATE_STORE=${store} ` : ''
  return `
Gateway   ${gateway}
Admin     ${admin}/metrics
Upstream  http://127.0.0.1:${upstreamPort} (demo)
Rules     ${config}; edit it while this runs
Ctrl-C stops everything.

In another terminal, in ${root}:

  ${curl} -i ${gateway}/api/hello
  ${onStore}npx headgate explain GET /api/hello -H "x-user-id: ann" -c ${config}
  ${curl} -i -H "x-user-id: ann" "${gateway}/api/hello?call=[1-6]"

The last one is answered 429 from the sixth call on: 5 a minute for each user.
`
}
