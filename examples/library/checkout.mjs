// Five checkouts a minute for each customer, 50 a second in all. README.md beside this file says how to run it.
import { createLimiter, fixedWindow, memoryStore, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'

const { HEADGATE_STORE: url = 'memory', INSTANCES: instances = '1' } = process.env

// The client only carries settings: the store makes a connection of its own from it.
async function openStore() {
  if (url === 'memory') return memoryStore()
  const { Redis } = await import('ioredis')
  return redisStore(new Redis(url, { lazyConnect: true }), { prefix: 'example' })
}

const store = await openStore()
const limiter = createLimiter({
  name: 'checkout',
  store,
  limits: {
    global: tokenBucket({ limit: 50, period: '1s' }),
    customer: fixedWindow({ limit: 5, period: '1m', align: 'first-hit' }),
  },
  instances: Number(instances),
  onStoreFailure: 'local',
  // A script asks at once; a service has connected long before its first request, and keeps the default of 50.
  timeoutMs: 1000,
})
limiter.on('degraded', ({ reason }) => console.log(`without the store: ${reason}`))

for (let attempt = 1; attempt <= 6; attempt++) {
  const decision = await limiter.check({ global: '', customer: 'ann' })
  console.log(attempt, describe(decision))
}
const { limits } = await limiter.peek({ global: '', customer: 'bob' })
console.log('bob', limits.map(({ name, remaining }) => `${name}: ${remaining} left`).join(', '))

await limiter.close()
await store.close()

function describe({ allowed, limitedBy, retryAfterMs, limits: statuses, source }) {
  if (!allowed) return `refused by ${limitedBy}, try again in ${Math.ceil(retryAfterMs / 1000)} s (${source})`
  const left = statuses.find(({ name }) => name === 'customer')?.remaining
  return `allowed, ${left} left (${source})`
}
