// One process that enforces rules over Redis. It asks at a steady rate until its standard input ends, then
// prints what it admitted and when it was without its store.
import { createEngine, fixedWindow, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis-6'

/** @type {{ url: string, instances: number, perSecond: number, rules: Record<string, object> }} */
const { url, instances, perSecond, rules } = JSON.parse(process.argv[2] ?? '{}')

let crashes = 0
process.on('unhandledRejection', () => crashes++)
process.on('uncaughtException', () => crashes++)

const store = redisStore(new Redis(url, { lazyConnect: true }))
const engine = createEngine({ store, instances })
const limits = Object.entries(rules).map(([rule, { algorithm, ...numbers }]) => ({
  rule,
  name: 'l',
  key: 'all',
  limit: algorithm === 'fixed-window' ? fixedWindow(numbers) : tokenBucket(numbers),
}))
const admitted = Object.fromEntries(limits.map(({ rule }) => [rule, { store: 0, local: 0 }]))
const away = []
const events = { degraded: 0, recovered: 0, error: 0 }
let failures = 0

engine.on('degraded', () => {
  events.degraded++
  away.push([Date.now(), Number.POSITIVE_INFINITY])
})
engine.on('recovered', () => {
  events.recovered++
  away.at(-1)[1] = Date.now()
})
engine.on('error', () => events.error++)

async function ask(item) {
  try {
    const { allowed, source } = await engine.check([item])
    if (allowed) admitted[item.rule][source]++
  } catch {
    failures++
  }
}

const open = new Set()
const begunMs = performance.now()
let asked = 0
const timer = setInterval(() => {
  for (; asked < ((performance.now() - begunMs) * perSecond) / 1000; asked++) {
    for (const item of limits) {
      const one = ask(item).finally(() => open.delete(one))
      open.add(one)
    }
  }
}, 2)

process.stdout.write('ready\n')
process.stdin.resume().on('end', async () => {
  clearInterval(timer)
  await Promise.all(open)
  for (const span of away) span[1] = Math.min(span[1], Date.now())
  process.stdout.write(`${JSON.stringify({ admitted, asked, away, events, failures, crashes })}\n`)
  await engine.close()
  await store.close()
})
