// Plays one trace: a process for each caller, everybody asked at the same instants on one Redis.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, startRedis } from '../common/redis.mjs'
import { CALLERS } from './traces.mjs'

const caller = join(import.meta.dirname, 'caller.mjs')
const skew = join(import.meta.dirname, 'skew.mjs')
const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6

/**
 * @returns `awayMs`: from when to when the server was away; `attempts`: for each name its attempts in the order of sending (see judge.mjs); `admitted` is undefined where there was
 *   an error or no answer in time; `local`: decided without the store
 */
export async function play(trace, { names, limits, random }) {
  const [longest] = limits.toSorted((a, b) => b.periodMs - a.periodMs)
  const events = trace.events(longest, random).toSorted((a, b) => a.atMs - b.atMs)
  for (const [id, event] of events.entries()) event.id = id
  const port = await freePort()
  let redis = await startRedis(port)
  const spec = { port, names, limits, callers: CALLERS }
  const callers = Array.from({ length: CALLERS }, (_, index) =>
    start({ ...spec, events: events.filter(({ caller }) => caller === index) }, trace.skewsMs?.[index] ?? 0),
  )
  try {
    await Promise.all(callers.map((each) => each.next()))
    // Counters go, scripts stay. The first instant is the beginning of a window by the clock.
    await redis.client.flushall('SYNC')
    const wallMs = Date.now() - monotonicMs()
    const startMs = Math.ceil((Date.now() + 200) / longest.periodMs) * longest.periodMs - wallMs
    const played = callers.map((each) => each.play(startMs))
    let awayMs
    if (trace.restartAt !== undefined) {
      await sleep(startMs + trace.restartAt * longest.periodMs - monotonicMs())
      awayMs = [monotonicMs() + wallMs]
      await redis.stop()
      redis = await startRedis(port)
      awayMs.push(monotonicMs() + wallMs)
    }
    const answers = await Promise.all(played)
    return { awayMs, attempts: attemptsOf(names, events, answers, wallMs) }
  } finally {
    for (const each of callers) each.end()
    await redis.stop()
  }
}

function start(message, skewMs) {
  const child = fork(caller, [], {
    execArgv: ['--import', `file://${skew}`],
    env: { ...process.env, SKEW_MS: `${skewMs}` },
  })
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`a caller ended with code ${code}`)
  })
  exited.catch(() => undefined)
  const next = async () => (await Promise.race([once(child, 'message'), exited]))[0]
  child.send(message)
  return {
    next,
    async play(startMs) {
      child.send({ startMs })
      return (await next()).answers
    },
    end: () => child.kill('SIGKILL'),
  }
}

function attemptsOf(names, events, answers, wallMs) {
  return Object.fromEntries(
    names.map((name, place) => {
      const attempts = answers.flatMap((each) =>
        each[place].map(([id, sentMs, receivedMs, outcome]) => ({
          key: events[id].key,
          cost: events[id].cost,
          sentMs: sentMs + wallMs,
          receivedMs: receivedMs + wallMs,
          admitted: outcome < 0 ? undefined : (outcome & 1) === 1,
          local: outcome >= 2,
        })),
      )
      return [name, attempts.toSorted((a, b) => a.sentMs - b.sentMs)]
    }),
  )
}
