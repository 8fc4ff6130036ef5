// A key that is asked for more than its limit, by callers spread over instances that each repeat a refusal for as long as
// it must still be one. This is a simulation of many instances.
import { randomOf } from '../accuracy/traces.mjs'

const SECONDS = 20

/**
 * @param {{ instances: number, asked: number, rate: number, announced?: number }} load
 *   asked: requests a second; rate: units a second that the limit gives (burst: a second's worth)
 *   announced: announcements a second that drop the entry everywhere
 * @returns share of the requests that still reach the store, in the steady state; `admitted` a second
 */
export function withDenyCache({ instances, asked, rate, announced = 0 }) {
  const random = randomOf(1)
  const gap = (perSecond) => (perSecond === 0 ? Number.POSITIVE_INFINITY : -Math.log(1 - random()) / perSecond)
  const deniedUntil = new Float64Array(instances)
  const count = { requests: 0, asked: 0, admitted: 0 }
  let level = rate
  let last = 0
  let announce = gap(announced)
  for (let now = gap(asked); now < SECONDS; now += gap(asked)) {
    for (; announce < now; announce += gap(announced)) deniedUntil.fill(0)
    const instance = Math.floor(random() * instances)
    count.requests++
    if (deniedUntil[instance] > now) continue
    count.asked++
    level = Math.max(0, level - (now - last) * rate)
    last = now
    if (level + 1 <= rate) {
      level += 1
      count.admitted++
    } else deniedUntil[instance] = now + (level + 1 - rate) / rate
  }
  return { share: count.asked / count.requests, admitted: count.admitted / SECONDS }
}
