// One caller's process: asks everybody at the same instants, and notes when it asked, when it heard, and what.
import { setTimeout as sleep } from 'node:timers/promises'
import { contenders } from './contenders.mjs'

/** After so long an answer is of no use to whoever waits for it. */
const LONGEST_MS = 3000
const ERROR = -1

/** The monotonic clock that all processes of the machine share; skewed clocks do not touch it. */
const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6

process.once('message', async ({ names, events, ...spec }) => {
  const asks = await Promise.all(names.map((name, i) => contenders[name].make({ ...spec, name: `c${i}` })))
  const begun = new Promise((resolve) => process.once('message', resolve))
  // Connections and scripts are there before the first instant; the parent then empties the server.
  await Promise.all(asks.map((ask) => ask('warm', 1).catch(() => undefined)))
  process.send({ ready: true })
  const { startMs } = await begun
  const answers = names.map(() => [])
  const pending = []
  for (const { atMs, key, cost, id } of events) {
    const waitMs = startMs + atMs - monotonicMs()
    if (waitMs > 0) await sleep(waitMs)
    // By turns each is the first to be asked.
    for (let i = 0; i < asks.length; i++) {
      const turn = (i + id) % asks.length
      pending.push(answered(asks[turn], key, cost).then((answer) => answers[turn].push([id, ...answer])))
    }
  }
  await Promise.all(pending)
  process.send({ answers }, () => process.exit(0))
})

const codeOf = (answer) => (typeof answer === 'boolean' ? Number(answer) : answer.allowed + 2 * answer.degraded)

async function answered(ask, key, cost) {
  const sentMs = monotonicMs()
  const late = sleep(LONGEST_MS, ERROR, { ref: false })
  const asked = ask(key, cost).then(codeOf, () => ERROR)
  const outcome = await Promise.race([asked, late])
  return [sentMs, monotonicMs(), outcome]
}
