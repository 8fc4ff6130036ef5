import type { RuleRequest } from 'headgate'
import { Matcher } from '../matching/matcher.ts'
import type { RulePlan } from '../matching/plan.ts'
import type { PathSettings } from '../paths/normalize.ts'
import type { Pattern } from '../paths/pattern.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import { type FileValues, listed, type MatchValues } from './context.ts'

/** How many limits the library judges in one check. */
export const MAX_LIMITS = 1000

/** How many rules are looked at, all in all, before the rest is left to the requests: it takes about a second. */
const MAX_WORK = 4_000_000

/** Stands where a pattern has a parameter: no pattern has it as a fixed segment. */
const ANY_SEGMENT = '%00'

/**
 * Refuses a file by which some request would meet more limits than one check may have: it could never
 * be judged. What is tried is a request for each rule and pattern, made of what the rule itself asks
 * for; so what is refused is proven, and what only a stranger request meets is found when it comes.
 */
export function refuseTooMany(
  values: FileValues,
  plans: readonly RulePlan[],
  paths: PathSettings,
  report: Report,
): void {
  const on = plans.filter(({ rule }) => rule.mode !== 'off')
  if (countLimits(on) <= MAX_LIMITS) return
  const matcher = new Matcher(on, paths)
  let work = 0
  const byName = new Map(on.map((plan) => [plan.rule.name, plan]))
  for (const { value, path } of listed(values.rules, ['rules'])) {
    const plan = byName.get(value.name ?? '')
    if (plan === undefined || plan.rule.kind !== 'limits') continue
    for (const request of requestsOf(plan, value.match ?? {})) {
      const near = matcher.onPath(request.path)
      work += near.length
      if (work > MAX_WORK) return
      if (countLimits(near.map((hit) => hit.plan)) <= MAX_LIMITS) continue
      const met = matcher.matching(request).map((hit) => hit.plan)
      const count = met.includes(plan) && met.every(({ rule }) => rule.kind === 'limits') ? countLimits(met) : 0
      if (count > MAX_LIMITS) {
        refuse(count, met.length > 1, path, report)
        return
      }
    }
  }
}

function refuse(count: number, together: boolean, path: Path, report: Report): void {
  const whose = together ? 'with those of other rules ' : ''
  const message = `one request meets ${count} limits here, ${whose}more than the ${MAX_LIMITS} of one check; write fewer, or narrow match`
  report.add([...path, 'limits'], 'HEADGATE_RULES_RANGE', message, { at: 'key' })
}

function countLimits(plans: readonly RulePlan[]): number {
  let count = 0
  for (const { limits } of plans) for (const { limit } of limits) if (limit.limit !== undefined) count += 1
  return count
}

/** For each pattern a request that the rule may match. */
function requestsOf({ patterns }: RulePlan, match: MatchValues): RuleRequest[] {
  const fields = new Map(
    Object.entries(match.header ?? {}).map(([name, value]) => [name.toLowerCase(), first(value) ?? '']),
  )
  const common = {
    method: first(match.method) ?? 'GET',
    query: '',
    host: (first(match.host) ?? '').toLowerCase().replace(/^\*/, 'any'),
    ip: (first(match.ip) ?? '192.0.2.1').replace(/\/.*$/, ''),
    trusted: true,
    header: (name: string) => {
      const value = fields.get(name)
      return value === undefined ? undefined : [value]
    },
  }
  const paths = patterns.length === 0 ? ['/'] : patterns.map(pathOf)
  return paths.map((path) => ({ ...common, path }))
}

function first(value: MatchValues['method']): string | undefined {
  return listed(value, [])[0]?.value
}

function pathOf({ segments }: Pattern): string {
  const texts = segments.map((segment) => (segment.kind === 'param' ? ANY_SEGMENT : encodeURIComponent(segment.text)))
  return `/${texts.join('/')}`
}
