// `npm start`: runs the gateway with examples/quickstart/headgate.yaml in front of a small demo upstream.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { startUpstream } from '../examples/quickstart/upstream.mjs'
import { build } from './build.mjs'
import { busyPorts } from './ports.mjs'
import { fail, install, isOnPath, root } from './setup.mjs'

const config = 'examples/quickstart/headgate.yaml'
const { HEADGATE_STORE: store, HEADGATE_PORT: port = '8080', HEADGATE_ADMIN_PORT: adminPort = '8083' } = process.env
const gateway = `http://127.0.0.1:${port}`
const admin = `http://127.0.0.1:${adminPort}`
// A command to paste must not hold a password.
const hasPassword = store?.includes('@') ?? false
const onStore = store && !hasPassword ? `HEADGATE_STORE=${store} ` : ''

let child
// The gateway drains, then everything ends with it.
const stop = () => (child ? child.kill('SIGTERM') : process.exit(1))
endWithShell()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)

// Before a minute of installing and building, not after it.
await assertFree()
await install()
await build()

const upstream = await startUpstream(0)
const upstreamPort = upstream.address().port
child = spawn(process.execPath, ['packages/cli/bin/headgate.js', 'up', '-c', config], {
  cwd: root,
  env: { ...process.env, UPSTREAM_PORT: String(upstreamPort) },
  stdio: 'inherit',
})

child.on('exit', (code) => {
  upstream.close()
  upstream.closeAllConnections()
  process.exitCode = code ?? 0
})

while (child.exitCode === null && !(await isReady())) await sleep(100)
if (child.exitCode === null) console.log(welcome())

/**
 * npm hands a SIGTERM to the shell in which it runs a script, and most shells die of it without a word to us.
 * Only then does the parent of this process change; elsewhere who started it may well go first.
 */
function endWithShell() {
  if (process.env.npm_lifecycle_event !== 'start') return
  const shell = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(watch)
    stop()
  }, 200)
  watch.unref()
}

async function assertFree() {
  const ports = { HEADGATE_PORT: port, HEADGATE_ADMIN_PORT: adminPort }
  const busy = await busyPorts(ports)
  if (busy.length === 0) return
  const said = busy.map(({ value, code }) => `Port ${value} of 127.0.0.1 cannot be used (${code}).`)
  const others = { ...ports, ...Object.fromEntries(busy.map(({ name, free }) => [name, free])) }
  const variables = Object.entries(others).map(([name, value]) => `${name}=${value} `)
  const secret = hasPassword ? ', with your HEADGATE_STORE before it (it is not shown, for it holds a password)' : ''
  fail(`${said.join('\n')}\nChoose others: ${variables.join('')}${onStore}npm start${secret}`)
}

async function isReady() {
  return fetch(`${admin}/readyz`).then(
    (response) => response.ok,
    () => false,
  )
}

function welcome() {
  const curl = isOnPath('curl') ? 'curl' : 'node examples/quickstart/curl.mjs'
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
