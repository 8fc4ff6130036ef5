// What it costs the server to tell something to every instance: PUBLISH, by the subscriber. Plain Redis: it is what
// announcements of a deny cache would cost (docs/guide/scaling.md).
import { Redis } from 'ioredis'
import { statement } from '../common/lines.mjs'
import { spread } from '../common/numbers.mjs'

const SUBSCRIBERS = 200
/** As long as the key of a counter, and a word before it. */
const MESSAGE = 'reset rate_limit:product-detail:user:00012345'

export async function announcements(bench) {
  const { port, client } = bench.redis
  const subscribers = Array.from({ length: SUBSCRIBERS }, () => new Redis({ host: '127.0.0.1', port }))
  const runs = []
  try {
    await Promise.all(subscribers.map((each) => each.subscribe('bench')))
    for (let round = 1; round <= bench.rounds; round++) {
      bench.progress(`announcements: round ${round} of ${bench.rounds}`)
      await published(client, 20)
      const before = await bench.redis.cpuUs()
      const count = bench.quick ? 50 : 500
      await published(client, count)
      runs.push({ deliveryUs: ((await bench.redis.cpuUs()) - before) / (count * SUBSCRIBERS) })
    }
  } finally {
    for (const each of subscribers) each.disconnect()
  }
  const value = spread(runs.map(({ deliveryUs }) => deliveryUs))
  const about = { work: `announcement to ${SUBSCRIBERS} subscribers`, measure: 'Redis CPU, µs a delivery', digits: 2 }
  return { runs: { announcements: runs }, lines: [statement(about, { own: value, value, runs })] }
}

async function published(client, count) {
  for (let i = 0; i < count; i++) await client.publish('bench', MESSAGE)
}
