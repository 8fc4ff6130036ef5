// Sends product pages to the four gateways at a steady rate, and says each second what was admitted.
// --help says what can be chosen.
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { ports } from './ports.mjs'

const USAGE = 'node examples/product-detail/load.mjs [--rate 2400] [--seconds 10] [--users 1500]'
const { rate, seconds, users } = readOptions()
for (const port of ports) await assertListening(port)

const agent = new Agent({ keepAlive: true, maxSockets: 64 })
/** By status, or by the code of the error. */
const counts = { 200: 0, 429: 0 }

function send(n) {
  const options = { agent, host: '127.0.0.1', port: ports[n % ports.length], path: '/api/product/detail' }
  return new Promise((resolve) => {
    const done = (what) => {
      counts[what] = (counts[what] ?? 0) + 1
      resolve()
    }
    // A step of a large prime spreads the requests over all users.
    const request = get({ ...options, headers: { 'x-user-id': `u${(n * 7919) % users}` } }, (response) => {
      response.resume().on('end', () => done(response.statusCode))
    })
    request.on('error', (error) => done(error.code ?? error.message))
  })
}

const pending = new Set()
const started = performance.now()
let sent = 0
let told = 0
for (let elapsed = 0; elapsed < seconds; elapsed = (performance.now() - started) / 1000) {
  for (; sent < elapsed * rate; sent++) {
    const one = send(sent)
    pending.add(one)
    one.then(() => pending.delete(one))
  }
  if (elapsed >= told + 1)
    console.log(`${++told} s: ${counts[200]} admitted, at most ${120 + Math.round(elapsed * 800)}`)
  await sleep(5)
}
await Promise.all(pending)
const most = Math.floor(120 + ((performance.now() - started) / 1000) * 800)
const { 200: admitted, 429: refused, ...others } = counts
console.log(`sent ${sent}: ${admitted} admitted (at most ${most}), ${refused} refused`)
if (Object.keys(others).length > 0) console.log('answered otherwise:', others)
agent.destroy()

function readOptions() {
  const number = (fallback) => ({ type: 'string', default: String(fallback) })
  const options = {
    rate: number(2400),
    seconds: number(10),
    users: number(1500),
    help: { type: 'boolean', short: 'h' },
  }
  try {
    const { help, ...texts } = parseArgs({ options }).values
    if (help) {
      console.log(`${USAGE}\nrate: requests a second; users: over how many they are spread.`)
      process.exit()
    }
    return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, positive(name, text)]))
  } catch (error) {
    fail(`${error.message.split('. ')[0]}; write ${USAGE}`)
  }
}

function positive(name, text) {
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new Error(`--${name} ${JSON.stringify(text)} is not a number above 0`)
}

async function assertListening(port) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect').catch(() =>
    fail(`no gateway listens on 127.0.0.1:${port}: start node examples/product-detail/run.mjs first`),
  )
  socket.destroy()
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
