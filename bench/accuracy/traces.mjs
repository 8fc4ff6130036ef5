// Who asks when. Lengths are in periods, so that a short trace is the same one in less time.

/** The same numbers for the same seed (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const CALLERS = 4
/** Of the trace with skewed clocks, in ms: what a caller's wall clock is wrong by. */
export const SKEWS_MS = [0, 300, -700, 2000]

const pick = (random, count) => Math.floor(random() * count)
const ask = (atMs, caller, key = 'a', cost = 1) => ({ atMs, caller, key, cost })

/** Independent callers: `times` the limit on average, for so many periods. */
function poisson(spec, random, { times, periods, each = ask }) {
  const { limit, periodMs } = spec
  const events = []
  let atMs = 0
  while (true) {
    atMs += (-Math.log(1 - random()) * periodMs) / (times * limit)
    if (atMs > periods * periodMs) return events
    events.push(each(atMs, pick(random, CALLERS)))
  }
}

function steady({ limit, periodMs }) {
  const count = Math.floor(0.8 * limit * 3)
  return Array.from({ length: count }, (_, i) => ask(((i + 0.5) * periodMs) / (0.8 * limit), i % CALLERS))
}

/** One request opens the window of who begins with it; then more than a limit just before and after each edge. */
function edges({ limit, periodMs }) {
  const burst = (periods) =>
    Array.from({ length: Math.ceil(1.5 * limit) }, (_, i) => ask(periods * periodMs + i, i % CALLERS))
  return [ask(0.01 * periodMs, 0), ...[0.95, 1.06, 1.95, 2.06].flatMap(burst)]
}

/** Each of three keys is quiet or busy by turns, for random times. */
function onAndOff(spec, random) {
  return ['a', 'b', 'c'].flatMap((key) => {
    const events = []
    for (let periods = 0; periods < 4; periods += 0.2 + random()) {
      const busy = poisson(spec, random, { times: 4 * random(), periods: 0.2 + random() })
      for (const { atMs, caller } of busy) events.push(ask(periods * spec.periodMs + atMs, caller, key))
    }
    return events
  })
}

/** Name → what is asked; `title` is its heading; `several`: of two limits at once. */
export const traces = {
  steady: { title: 'Steady, at 80 % of the limit', what: 'Nothing may be refused.', events: steady },
  edges: {
    title: 'Bursts at the edges of windows',
    what: '1.5 × the limit at once, just before and just after each edge of a window, of windows by the clock and of those that begin with the first request.',
    events: edges,
  },
  skewed: {
    title: 'Four callers with skewed clocks',
    what: `Twice the limit at random instants. The callers' wall clocks are wrong by ${SKEWS_MS.join(', ')} ms.`,
    events: (spec, random) => poisson(spec, random, { times: 2, periods: 3 }),
    skewsMs: SKEWS_MS,
  },
  weighted: {
    title: 'Weighted costs',
    what: 'Twice the limit in units, at random instants, of costs from 1 to 8. Only those that know costs.',
    events: (spec, random) =>
      poisson(spec, random, {
        times: 2 / 4.5,
        periods: 3,
        each: (atMs, caller) => ask(atMs, caller, 'a', 1 + pick(random, 8)),
      }),
    costs: true,
  },
  hammering: {
    title: 'Hammering at 100 × the limit',
    what: 'Random instants, whatever was answered.',
    events: (spec, random) => poisson(spec, random, { times: 100, periods: 1.5 }),
    // All of them at once would be judged by how busy the machine is.
    atOnce: 3,
  },
  random: {
    title: 'Random',
    what: 'Three keys, each quiet or busy by turns at up to four times the limit.',
    events: onAndOff,
  },
  several: {
    title: 'Two limits at once',
    what: 'The limit, and a quarter of it in a fifth of the period; twice the limit at random instants. A request passes if both admit it, and one that does not should take nothing from either. Who cannot judge two at once is asked for one after the other, the shorter first, as its users would.',
    events: (spec, random) => poisson(spec, random, { times: 2, periods: 3 }),
    several: true,
  },
  restart: {
    title: 'A restart of Redis',
    what: 'Twice the limit at random instants; in the middle the server is killed and started anew, empty. Nobody promises to remember, so each life of the server is judged by itself; what was forgotten shows in the most in a period. What Headgate passes without Redis meanwhile, from its local share, counts as over.',
    events: (spec, random) => poisson(spec, random, { times: 2, periods: 3 }),
    restartAt: 1.5,
  },
}
