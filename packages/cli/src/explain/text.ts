import type { RuleExplanation } from '@headgate/rules'
import type { LimitStatus, RuleRequest } from 'headgate'
import { stateText, type Written } from '../limit-text.ts'
import type { Output } from '../output.ts'
import { table } from '../table.ts'
import type { Judged } from './judged.ts'
import type { Verdict } from './verdict.ts'

/** How many rules that do not match are listed; of thousands nobody reads. */
const MAX_OTHERS = 20

/** `GET /api/orders  from 203.0.113.7  host api.example.com  route /api/*` */
export function requestLine({ method, path, query, ip, host, route }: RuleRequest, output: Output): string {
  const facts = [
    `from ${ip}`,
    host === '' ? 'no host' : `host ${host}`,
    route === undefined ? 'no route' : `route ${route}`,
  ]
  return `${output.style('bold', `${method} ${path}${query === '' ? '' : `?${query}`}`)}  ${facts.join('  ')}`
}

/** The rules that match, each with its limits; then why the others do not. */
export function ruleLines(rules: readonly Judged[], at: number, output: Output): string[] {
  const matched = rules.filter((rule) => rule.matched)
  const others = rules.filter((rule) => !rule.matched)
  const lines = matched.flatMap((rule) => matchedLines(rule, at, output))
  if (matched.length === 0) lines.push('No rule matches.')
  if (others.length > 0) lines.push('', 'Not matched:')
  lines.push(...table(nearest(others).map(({ rule, why }) => [`  ${rule}`, output.style('dim', why)])))
  if (others.length > MAX_OTHERS)
    lines.push(output.style('dim', `  … and ${others.length - MAX_OTHERS} more; --json lists all`))
  return lines
}

export function verdictLine({ allowed, status, why }: Verdict, output: Output): string {
  const word = allowed ? output.style('green', 'Would pass') : output.style('red', `Would be refused with ${status}`)
  return `${word}: ${why}.`
}

/** Rules for other paths are the least interesting. */
function nearest(others: readonly RuleExplanation[]): RuleExplanation[] {
  const isPath = ({ why }: RuleExplanation) => Number(why.startsWith('the path is none of'))
  return [...others].sort((a, b) => isPath(a) - isPath(b)).slice(0, MAX_OTHERS)
}

function matchedLines({ rule, kind, why, cost, note, limits }: Judged, at: number, output: Output): string[] {
  const costs = note === undefined ? `costs ${cost}` : `costs ${cost} (${note})`
  const does = kind === 'limits' ? costs : kind === 'allow' ? 'allows it' : 'denies it'
  const head = `${output.style('bold', rule)}  matches ${why}, ${does}`
  const rows = limits.map(({ name, note, status, written, storeKey }) => [
    `  ${name}`,
    written?.text ?? '',
    status && written ? shownState(status, written, at, output) : '',
    [storeKey && output.style('dim', storeKey), note].filter(Boolean).join('  '),
  ])
  return [head, ...table(rows)]
}

function shownState(status: LimitStatus, written: Written, at: number, output: Output): string {
  const text = stateText(status, written, at)
  return status.retryAfterMs > 0 ? output.style('red', text) : text
}
