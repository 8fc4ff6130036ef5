// One key whose instances take units ahead: a slice each, as long as a slice should last at their rate, and at most their
// part of what may lie idle. Held units do not drain; spent ones do, from when they are reported. It is the mechanism of
// packages/limiter/src/lease.ts without its background: each request that finds nothing asks, and gets its slice at once.
import { randomOf } from '../accuracy/traces.mjs'

const SECONDS = 5
/** How long a slice should last, and when what is left of it goes back, in s. */
const SLICE_S = 0.02
const LASTS_S = 0.1
/** The most of a burst that may be held ahead, by all instances together and by one, and the least that is worth it. */
const MOST_HELD = 1 / 16
const OWN_SHARE = 1 / 50
const LEAST = 4

/**
 * @param {{ instances: number, asked: number, rate: number, burst: number }} load requests and units a second
 * @returns `calls` of the store for a decision; `stranded` and `strandedMost`: the share of the burst that lies unused;
 *   `short`: what passes less than without leases, as a share; `overshoot`: the law broken, in units
 */
export function withLeases({ instances, asked, rate, burst }) {
  const random = randomOf(1)
  const gap = () => -Math.log(1 - random()) / asked
  const slice = sliceOf({ instances, asked, burst })
  // A budget too small to share stays exact.
  if (slice === 1) return { slice, calls: 1, stranded: 0, strandedMost: 0, short: 0, overshoot: 0 }
  const unused = new Int32Array(instances)
  const spent = new Int32Array(instances)
  const ends = new Float64Array(instances)
  /** In the order in which they end, since all last as long. */
  const ending = []
  const store = bucketOf(rate)
  const law = bucketOf(rate)
  const exact = bucketOf(rate)
  const count = { requests: 0, calls: 0, admitted: 0, exact: 0, overshoot: 0 }
  let held = 0
  const idle = { now: 0, most: 0, area: 0 }

  function give(instance, now) {
    count.calls++
    store.add(now, spent[instance])
    held -= spent[instance] + unused[instance]
    idle.now -= unused[instance]
    spent[instance] = 0
    unused[instance] = 0
  }
  function take(instance, now) {
    if (spent[instance] + unused[instance] > 0) give(instance, now)
    else count.calls++
    const room = Math.min(burst - store.level(now), burst * MOST_HELD) - held
    const granted = Math.max(0, Math.min(slice, Math.floor(room)))
    held += granted
    unused[instance] = granted
    idle.now += granted
    ends[instance] = now + LASTS_S
    if (granted > 0) ending.push([now + LASTS_S, instance])
  }

  let last = 0
  let begun = 0
  for (let now = gap(); now < SECONDS; now += gap()) {
    for (; begun < ending.length && ending[begun][0] <= now; begun++) {
      const [end, instance] = ending[begun]
      if (ends[instance] === end && spent[instance] + unused[instance] > 0) give(instance, end)
    }
    idle.area += idle.now * (now - last)
    last = now
    count.requests++
    if (exact.level(now) + 1 <= burst) count.exact += exact.add(now, 1)
    const instance = Math.floor(random() * instances)
    if (unused[instance] === 0) take(instance, now)
    idle.most = Math.max(idle.most, idle.now)
    if (unused[instance] > 0) {
      unused[instance]--
      idle.now--
      spent[instance]++
    } else {
      // Nothing was to be had ahead: the store decides this one.
      if (store.level(now) + held + 1 > burst) continue
      store.add(now, 1)
    }
    count.admitted += law.add(now, 1)
    count.overshoot = Math.max(count.overshoot, law.level(now) - burst)
  }
  return {
    slice,
    calls: count.calls / count.requests,
    stranded: idle.area / SECONDS / burst,
    strandedMost: idle.most / burst,
    short: Math.max(0, 1 - count.admitted / count.exact),
    overshoot: count.overshoot,
  }
}

/** As long as a slice should last, and no more than an instance's part of what may be held. */
function sliceOf({ instances, asked, burst }) {
  const byRate = Math.ceil((asked / instances) * SLICE_S)
  const units = Math.min(byRate, Math.floor(burst * OWN_SHARE))
  return units < LEAST ? 1 : units
}

function bucketOf(rate) {
  let used = 0
  let last = 0
  const level = (now) => Math.max(0, used - (now - last) * rate)
  function add(now, units) {
    used = level(now) + units
    last = now
    return units
  }
  return { level, add }
}
