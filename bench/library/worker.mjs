// One contender's process: warms up, reports ready, and on a word of its parent does the timed work.
import { setTimeout as sleep } from 'node:timers/promises'
import { algorithms } from '../algorithms/contenders.mjs'
import { contenders } from './contenders.mjs'
import { added } from './latency.mjs'

const works = { throughput, latency, fill }
/** Who writes all keys before the timed part, however few callers there are in it. */
const FILLERS = 64
const all = { ...contenders, ...algorithms }

process.once('message', async (spec) => {
  const contender = await all[spec.contender](spec)
  await works[spec.work](contender, spec)
  // Also writes the profile, where one was asked for.
  process.exit(0)
})

/** Tells the parent, and waits for its answer. */
function tell(message) {
  const answer = new Promise((resolve) => process.once('message', resolve))
  process.send(message)
  return answer
}

async function throughput(contender, { keys, callers, warmMs, measureMs }) {
  const names = keyNames(keys)
  await fillOnce(contender, names, FILLERS)
  await callFor(contender, names, callers, warmMs)
  await tell({ ready: true })
  const cpu = process.cpuUsage()
  const result = await callFor(contender, names, callers, measureMs)
  const { user, system } = process.cpuUsage(cpu)
  await tell({ ...result, cpuUs: user + system })
}

async function latency(contender, { keys, perSecond, warmMs, measureMs }) {
  const names = keyNames(keys)
  await fillOnce(contender, names, FILLERS)
  await added(contender, names, perSecond, warmMs)
  await tell({ ready: true })
  await tell(await added(contender, names, perSecond, measureMs))
}

/** Writes each key several times, for the parent to look at. */
async function fill(contender, { keys, fills = 3, apartMs = 0 }) {
  const names = keyNames(keys)
  for (let i = 0; i < fills; i++) {
    if (i > 0 && apartMs > 0) await sleep(apartMs)
    await fillOnce(contender, names, FILLERS)
  }
  await tell({ ready: true })
}

/** Names as long as a customer's number, the same for everybody. */
function keyNames(count) {
  return Array.from({ length: count }, (_, i) => `user-${String(i).padStart(8, '0')}`)
}

/** Every key once, so that timed checks find the same state whoever is fast: a store with all keys in it. */
async function fillOnce({ check, ok }, names, callers) {
  let next = 0
  await concurrently(callers, async () => {
    while (next < names.length) {
      const name = names[next++]
      while (!ok(await check(name))) await sleep(1)
    }
  })
}

/** Each caller asks about a random key, waits for the answer, and asks again. */
async function callFor({ check, ok, stranded }, names, callers, ms) {
  let decisions = 0
  let wrong = 0
  let idle = 0
  let samples = 0
  let over = false
  const begun = performance.now()
  await concurrently(callers, async () => {
    while (!over) {
      const answer = await check(names[Math.floor(Math.random() * names.length)])
      if (!ok(answer)) wrong += 1
      decisions += 1
      // A timer would not do: the memory stores answer without ever letting the event loop turn.
      if (decisions % 16 === 0 && performance.now() - begun > ms) over = true
      if (stranded !== undefined && decisions % 1024 === 0) {
        idle += stranded()
        samples += 1
      }
    }
  })
  return { decisions, wrong, elapsedMs: performance.now() - begun, stranded: samples > 0 ? idle / samples : 0 }
}

function concurrently(count, work) {
  return Promise.all(Array.from({ length: count }, work))
}
