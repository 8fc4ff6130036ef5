import { setImmediate as turn } from 'node:timers/promises'
import { percentile } from '../common/numbers.mjs'

/**
 * Decisions and bare round trips (a GET of the same key through the user's own client) in turns, each
 * `perSecond` times a second at random instants, both timed from the instant at which they were due.
 * The loop spins, since a timer's millisecond is longer than what is measured.
 */
export async function added({ check, ok, client }, names, perSecond, ms) {
  const decided = []
  const bare = []
  const pending = []
  let wrong = 0
  const begun = performance.now()
  let due = begun

  async function decide(name, from) {
    const answer = await check(name)
    decided.push(performance.now() - from)
    if (!ok(answer)) wrong += 1
  }
  async function roundTrip(name, from) {
    await client.get(`rate_limit:bench:${name}`)
    bare.push(performance.now() - from)
  }

  for (let calls = 0; performance.now() - begun < ms; await turn()) {
    while (due <= performance.now()) {
      const name = names[Math.floor(Math.random() * names.length)]
      pending.push(calls++ % 2 === 0 ? decide(name, due) : roundTrip(name, due))
      // Exponential gaps: callers know nothing of each other.
      due += (-Math.log(1 - Math.random()) * 1000) / (2 * perSecond)
    }
  }
  await Promise.all(pending)
  const percentiles = (values) => [0.5, 0.99, 0.999].map((share) => percentile(values, share))
  return { decisions: decided.length, wrong, decidedMs: percentiles(decided), bareMs: percentiles(bare) }
}
