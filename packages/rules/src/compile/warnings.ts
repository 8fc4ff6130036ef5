import type { RulePlan } from '../matching/plan.ts'
import { isRate, parseRate } from '../rate.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import { type FileValues, type LimitValues, listed, type RuleValues } from './context.ts'
import { Reachability } from './reachable.ts'

/** How much of a rate a burst may hold before it is asked about. */
const BURST_MS = 10_000

/** Reports what loads but is probably not meant. */
export function warn(values: FileValues, plans: readonly RulePlan[], report: Report): void {
  warnInstances(values, report)
  const reachability = new Reachability(values, plans)
  const byName = new Map(plans.map((plan) => [plan.rule.name, plan]))
  for (const { value, path } of listed(values.rules, ['rules'])) {
    if (value.description === undefined && !report.failedWithin([...path, 'description'])) {
      report.warn([...path, 'name'], 'has no description; say where its numbers come from')
    }
    const plan = byName.get(value.name ?? '')
    if (plan === undefined || plan.rule.mode === 'off') continue
    warnLimits(value, plan, path, report)
    const reason = reachability.reason(plan, value.match ?? {})
    if (reason !== undefined) report.warn([...path, 'match'], reason, 'key')
  }
}

function warnInstances({ store = 'memory', instances = 1 }: FileValues, report: Report): void {
  if (store === 'memory' || instances > 1) return
  const path = report.source.written(['instances']) === undefined ? ['store'] : ['instances']
  const message =
    'instances is 1 on a store that others can share: each process would admit the whole budget while the store is away; write how many there are'
  report.warn(path, message, 'key')
}

function warnLimits(values: RuleValues, plan: RulePlan, path: Path, report: Report): void {
  for (const { value, path: place } of listed(values.limits, [...path, 'limits'])) {
    warnBurst(value.limit, value.burst, place, report)
    for (const [key, override] of Object.entries(value.overrides ?? {})) {
      if (typeof override === 'object') warnBurst(override.limit, override.burst, [...place, 'overrides', key], report)
    }
    warnSkip(value, plan, place, report)
    warnCost(value, plan, place, report)
  }
}

function warnBurst(limit: string | undefined, burst: number | undefined, path: Path, report: Report): void {
  const rate = parseRate(limit ?? '')
  if (burst === undefined || !isRate(rate) || burst <= Math.max(rate.units, (rate.units * BURST_MS) / rate.periodMs))
    return
  report.warn(
    [...path, 'burst'],
    '{} is more than the limit lets pass in one period and in 10 s; is so much at once meant?',
  )
}

function warnSkip({ by }: LimitValues, plan: RulePlan, path: Path, report: Report): void {
  for (const { value, path: place } of listed(by, [...path, 'by'])) {
    const dimension = plan.limits.flatMap((limit) => limit.by).find(({ name }) => name === value)
    if (dimension?.missing === 'skip') {
      report.warn(
        place,
        '{} has missing: skip, so a request without a value escapes this limit; is another limit left for it?',
      )
    }
  }
}

function warnCost(values: LimitValues, { rule, limits }: RulePlan, path: Path, report: Report): void {
  const own = limits.find(
    ({ limit }) => limit.text === values.limit && (values.name === undefined || limit.name === values.name),
  )
  const limit = own?.limit.limit
  if (limit === undefined || limit.limit === 0 || typeof rule.cost !== 'number' || rule.cost <= limit.capacity) return
  report.warn(
    [...path, 'limit'],
    '{} holds less than one request of this rule costs, so none can ever pass; write a larger burst or a smaller cost',
  )
}
