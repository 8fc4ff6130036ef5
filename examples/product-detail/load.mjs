// Sends product pages to the four gateways at a steady rate, and says each second what was admitted.
//   node examples/product-detail/load.mjs [--rate 2400] [--seconds 10] [--users 1500]
import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

const number = (fallback) => ({ type: 'string', default: String(fallback) })
const { values } = parseArgs({ options: { rate: number(2400), seconds: number(10), users: number(1500) } })
const [rate, seconds, users] = [values.rate, values.seconds, values.users].map(Number)

const ports = [8081, 8082, 8083, 8084]
const agent = new Agent({ keepAlive: true, maxSockets: 64 })
const counts = { 200: 0, 429: 0, other: 0 }

function send(n) {
  const options = { agent, host: '127.0.0.1', port: ports[n % ports.length], path: '/api/product/detail' }
  return new Promise((resolve) => {
    const done = (status) => {
      counts[status in counts ? status : 'other'] += 1
      resolve()
    }
    // A step of a large prime spreads the requests over all users.
    const request = get({ ...options, headers: { 'x-user-id': `u${(n * 7919) % users}` } }, (response) => {
      response.resume().on('end', () => done(response.statusCode))
    })
    request.on('error', () => done('other'))
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
const law = Math.floor(120 + ((performance.now() - started) / 1000) * 800)
console.log(`sent ${sent}: ${counts[200]} admitted (at most ${law}), ${counts[429]} refused, ${counts.other} otherwise`)
agent.destroy()
