// A line of the table: two numbers, what is between them, and whether that reaches its target.
import { markdownTable } from './markdown.mjs'
import { spread } from './numbers.mjs'

/**
 * Headgate's number over another's, run by run: each pair was measured one after the other.
 * @param about `{ work, measure, peer, of, digits?, atLeast?, atMost? }`; `of` takes the number out of a run
 */
export function compare(about, own, other) {
  const value = spread(own.map((run, i) => about.of(run) / about.of(other[i])))
  const runs = [...own, ...other]
  return line(about, { own: spread(own.map(about.of)), other: spread(other.map(about.of)), value, runs })
}

/** The same for a value that is not a ratio; without a peer there is no `other`. */
export function statement(about, numbers) {
  return line(about, numbers)
}

function line({ work, measure, peer, digits = 0, atLeast, atMost }, { own, other, value, runs }) {
  const reached = atLeast !== undefined ? value.median >= atLeast : atMost !== undefined && value.median <= atMost
  const judged = atLeast !== undefined || atMost !== undefined
  const target = atLeast !== undefined ? { atLeast } : judged ? { atMost } : undefined
  // A check that was not admitted by the store was not counted; many of them make a run worth nothing.
  const wrong = Math.max(...runs.map((run) => (run.wrong ?? 0) / (run.decisions ?? 1)))
  return { work, measure, peer, digits, own, other, value, target, reached: judged ? reached : undefined, wrong }
}

/** The share of wrong answers (refused, or not the store's) up to which a run says something. */
const MOST_WRONG = 0.001
const VERDICTS = { true: 'yes', false: '**no**', undefined: '' }
const HEAD = ['work', 'measure', 'Headgate', 'compared with', '', 'ratio (from–to)', 'target', 'reached']

/** @returns {string} the lines as a Markdown table */
export function table(lines) {
  const cells = lines.map((each) => [
    each.work,
    each.measure,
    number(each.own.median, each.digits),
    each.peer ?? '',
    each.other === undefined ? '' : number(each.other.median, each.digits),
    `${number(each.value.median, 2)} (${number(each.value.min, 2)}–${number(each.value.max, 2)})`,
    target(each.target),
    each.wrong > MOST_WRONG ? `not valid: ${percent(each.wrong)} wrong answers` : VERDICTS[each.reached],
  ])
  return markdownTable(HEAD, cells)
}

function target(bounds) {
  if (bounds === undefined) return ''
  return bounds.atLeast !== undefined ? `≥ ${bounds.atLeast}` : `≤ ${bounds.atMost}`
}

function number(value, digits) {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`
}
