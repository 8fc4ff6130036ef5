// Holds what a limiter answered against what it promises. An attempt was decided at some instant between `sentMs` and
// `receivedMs`, nobody knows when; so an answer is wrong only if no instant in between makes it right.

/**
 * @typedef {{ sentMs: number, receivedMs: number, cost: number, admitted?: boolean }} Attempt
 *   on the true clock, in ms since the Unix epoch; `admitted` is undefined where nobody heard whether it was
 * @typedef {{ over: number, hasRoom(attempt: Attempt): boolean }} Judgement
 *   over: the most units that passed beyond the promise, at the worst instant
 *   hasRoom: whether the attempt fitted for certain, so that refusing it was wrong
 */

/** Clocks of a server and of this process are told apart only so far. */
const SLACK_MS = 2

const units = (attempts) => attempts.reduce((total, { cost }) => total + cost, 0)
const least = (values) => values.reduce((most, value) => Math.max(most, value), 0)
const passed = (attempts) => attempts.filter(({ admitted }) => admitted)
/** What may have been charged: also what failed, or was answered too late; nobody knows when. */
const charged = (attempts) =>
  attempts
    .filter(({ admitted }) => admitted !== false)
    .map((each) => (each.admitted ? each : { ...each, receivedMs: Number.POSITIVE_INFINITY }))

/** What passed for certain in some span of this length, at most. */
export function mostWithin(attempts, spanMs) {
  const admitted = passed(attempts)
  return least(
    admitted.map(({ sentMs }) =>
      units(admitted.filter((each) => each.sentMs >= sentMs && each.receivedMs < sentMs + spanMs - SLACK_MS)),
    ),
  )
}

/** Whether so much fits besides all that may have passed in the span before. */
function fitsWithin(admitted, { sentMs, receivedMs, cost }, limit, spanMs) {
  const before = admitted.filter(
    (each) => each.receivedMs > sentMs - spanMs - SLACK_MS && each.sentMs < receivedMs + SLACK_MS,
  )
  return units(before) + cost <= limit
}

/** At most `limit` in any window of `overMs`; what leaves at most `limit` in the last `underMs` passes. */
export function any(attempts, { limit, periodMs, overMs = periodMs, underMs = periodMs }) {
  const maybe = charged(attempts)
  return {
    over: Math.max(0, mostWithin(attempts, overMs) - limit),
    hasRoom: (attempt) => fitsWithin(maybe, attempt, limit, underMs),
  }
}

/** At most burst + limit × time / period in any time; `lag` units may come back late, or early. */
export function bucket(attempts, { limit, periodMs, lag = 0 }) {
  const admitted = passed(attempts)
  const maybe = charged(attempts)
  const perMs = limit / periodMs
  // Units of all that lies in a span, less what came back in it.
  const over = least(
    admitted.map((first) => {
      const after = admitted.filter(({ sentMs }) => sentMs >= first.sentMs)
      return least(
        after.map(({ receivedMs }) => {
          const inside = after.filter((each) => each.receivedMs <= receivedMs)
          return units(inside) - limit - lag - (receivedMs + SLACK_MS - first.sentMs) * perMs
        }),
      )
    }),
  )
  function hasRoom({ sentMs, receivedMs, cost }) {
    // As late as each may have been charged, so that the least has drained.
    const instants = maybe
      .filter((each) => each.sentMs < receivedMs + SLACK_MS)
      .map((each) => [Math.min(each.receivedMs, sentMs), each.cost])
      .sort(([a], [b]) => a - b)
    let level = 0
    let lastMs = 0
    for (const [atMs, charge] of [...instants, [sentMs - SLACK_MS, 0]]) {
      level = Math.max(0, level - Math.max(0, atMs - lastMs) * perMs) + charge
      lastMs = atMs
    }
    return level + cost <= limit - lag
  }
  return { over: Math.floor(over), hasRoom }
}

/** At most `limit` in each window that begins at a whole multiple of the period. */
export function clock(attempts, { limit, periodMs }) {
  const admitted = passed(attempts)
  const maybe = charged(attempts)
  const used = (startMs, certain) =>
    units((certain ? admitted : maybe).filter(within(startMs, startMs + periodMs, certain)))
  return {
    over: least(windowsOf(admitted, periodMs).map((startMs) => used(startMs, true) - limit)),
    hasRoom(attempt) {
      const startMs = windowOf(attempt.sentMs - SLACK_MS, periodMs)
      const sure = startMs === windowOf(attempt.receivedMs + SLACK_MS, periodMs)
      return sure && used(startMs, false) + attempt.cost <= limit
    },
  }
}

/** Such windows, where what passed in the one before counts by the part of it that is still within a period. */
export function weighted(attempts, { limit, periodMs }) {
  const admitted = passed(attempts)
  const maybe = charged(attempts)
  const used = (startMs, certain, filter = () => true) =>
    units((certain ? admitted : maybe).filter(within(startMs, startMs + periodMs, certain)).filter(filter))
  const level = (startMs, nowMs, certain, filter) => {
    const share = 1 - Math.min(1, Math.max(0, (nowMs - startMs) / periodMs))
    return Math.floor(share * used(startMs - periodMs, certain)) + used(startMs, certain, filter)
  }
  return {
    over: least(
      admitted.map(({ sentMs, receivedMs, cost }) => {
        const startMs = windowOf(sentMs, periodMs)
        if (windowOf(receivedMs + SLACK_MS, periodMs) !== startMs) return 0
        return level(startMs, receivedMs + SLACK_MS, true, (each) => each.receivedMs < sentMs) + cost - limit
      }),
    ),
    hasRoom({ sentMs, receivedMs, cost }) {
      const startMs = windowOf(sentMs - SLACK_MS, periodMs)
      if (windowOf(receivedMs + SLACK_MS, periodMs) !== startMs) return false
      return level(startMs, sentMs - SLACK_MS, false, (each) => each.sentMs <= receivedMs) + cost <= limit
    },
  }
}

/** At most `limit` in each window; one opens with the first attempt that `opens` it when none is open. */
export function firstHit(attempts, { limit, periodMs, opens = (_attempt) => true }) {
  const windows = []
  const outside = new Set()
  let unsure
  for (const attempt of attempts) {
    const open = windows.at(-1)
    if (open === undefined || attempt.sentMs > open.toMs + periodMs + SLACK_MS) {
      if (!opens(attempt)) {
        if (unsure === undefined) outside.add(attempt)
        continue
      }
      const fromMs = unsure ?? attempt.sentMs
      windows.push({ fromMs, toMs: attempt.receivedMs, sure: [attempt], maybe: open?.late ?? [], late: [] })
      unsure = undefined
    } else if (attempt.receivedMs < open.fromMs + periodMs - SLACK_MS) open.sure.push(attempt)
    else {
      // It may be the last of this window, or open the next.
      if (opens(attempt)) unsure ??= attempt.sentMs
      open.late.push(attempt)
    }
  }
  return {
    over: least(windows.map(({ sure }) => units(passed(sure)) - limit)),
    hasRoom(attempt) {
      if (outside.has(attempt)) return attempt.cost <= limit
      const open = windows.find(({ sure }) => sure.includes(attempt))
      if (open === undefined) return false
      const before = [...open.sure, ...open.maybe].filter(({ sentMs }) => sentMs <= attempt.receivedMs)
      return units(charged(before)) + attempt.cost <= limit
    },
  }
}

/** At most `limit` in each window of the period, which begins nobody says when. */
export function unanchored(attempts, { limit, periodMs }) {
  const maybe = charged(attempts)
  const spans = Array.from({ length: 10 }, (_, i) => i + 1)
  // A span of n periods touches at most n + 1 windows.
  const over = least(spans.map((n) => mostWithin(attempts, n * periodMs) - limit * (n + 1)))
  return { over, hasRoom: (attempt) => fitsWithin(maybe, attempt, limit, periodMs) }
}

/** First-hit windows; the first refusal of one blocks for `blockMs`, and after that all is as at first. */
export function blocking(attempts, { limit, periodMs, blockMs = periodMs }) {
  const maybe = charged(attempts)
  const wrong = new Set()
  let blockedMs = Number.NEGATIVE_INFINITY
  for (const attempt of attempts) {
    if (attempt.admitted !== false || attempt.sentMs < blockedMs + SLACK_MS) continue
    if (fitsWithin(maybe, attempt, limit, periodMs)) wrong.add(attempt)
    else blockedMs = attempt.receivedMs + blockMs
  }
  return { over: firstHit(attempts, { limit, periodMs }).over, hasRoom: (attempt) => wrong.has(attempt) }
}

function windowOf(ms, periodMs) {
  return Math.floor(ms / periodMs) * periodMs
}

function windowsOf(attempts, periodMs) {
  return [...new Set(attempts.map(({ sentMs }) => windowOf(sentMs, periodMs)))]
}

/** Whether an attempt was in this time for certain, or may have been. */
function within(fromMs, toMs, certain) {
  return certain
    ? ({ sentMs, receivedMs }) => sentMs >= fromMs + SLACK_MS && receivedMs < toMs - SLACK_MS
    : ({ sentMs, receivedMs }) => receivedMs >= fromMs - SLACK_MS && sentMs < toMs + SLACK_MS
}
