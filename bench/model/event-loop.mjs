// How many checks share a call of the script in an instance that is not busy: those that arrive in one turn of its event
// loop. Arrivals are independent; a turn lasts for as long as the work of what arrived in the turn before.
import { randomOf } from '../accuracy/traces.mjs'

/** What a turn costs besides its requests, in µs. */
const TURN_US = 20
const TURNS = 20_000

/**
 * @param {number} perSecond checks of one instance
 * @param {number} workUs what a request costs its process
 * @returns checks in a batch on average; NaN where the process cannot keep up
 */
export function batchSize(perSecond, workUs, most = 128) {
  if ((perSecond * workUs) / 1e6 >= 0.95) return Number.NaN
  const random = randomOf(1)
  const gapUs = () => (-Math.log(1 - random()) * 1e6) / perSecond
  let nextUs = gapUs()
  let nowUs = 0
  let checks = 0
  let calls = 0
  for (let turn = 0; turn < TURNS; turn++) {
    // Nothing to do: the loop sleeps until the next request.
    nowUs = Math.max(nowUs, nextUs)
    let taken = 0
    for (; nextUs <= nowUs; nextUs += gapUs()) taken++
    checks += taken
    calls += Math.ceil(taken / most)
    nowUs += TURN_US + taken * workUs
  }
  return checks / calls
}
