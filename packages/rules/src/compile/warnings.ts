import type { Limit } from 'headgate'
import type { Dimension } from '../dimensions/dimension.ts'
import type { RulePlan } from '../matching/plan.ts'
import { isRate, parseRate } from '../rate.ts'
import type { CostHeader } from '../rule-file.ts'
import { durationMs } from '../schema/values.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import { type FileValues, type LimitValues, listed, type RuleValues } from './context.ts'
import { defaultName } from './limits.ts'
import { Reachability } from './reachable.ts'

/** How much of a rate a burst may hold before it is asked about. */
const BURST_MS = 10_000

/** Reports what loads but is probably not meant. */
export function warn(values: FileValues, plans: readonly RulePlan[], report: Report): void {
  warnInstances(values, report)
  const rules = listed(values.rules, ['rules'])
  // What is left of a broken match says nothing about what the rule would match.
  const broken = new Set(
    rules.filter(({ path }) => report.failedWithin([...path, 'match'])).map(({ value }) => value.name),
  )
  const whole = plans.filter(({ rule }) => !broken.has(rule.name))
  const reachability = new Reachability(values, whole)
  const byName = new Map(plans.map((plan) => [plan.rule.name, plan]))
  for (const { value, path } of rules) {
    if (value.description === undefined && !report.failedWithin([...path, 'description'])) {
      report.warn([...path, 'name'], 'has no description; say where its numbers come from')
    }
    const plan = byName.get(value.name ?? '')
    if (plan === undefined || plan.rule.mode === 'off') continue
    warnLimits(value, plan, path, report)
    const reason = broken.has(value.name) ? undefined : reachability.reason(plan, value.match ?? {})
    if (reason !== undefined) report.warn([...path, 'match'], reason, 'key')
  }
}

/** Who wrote 1 knows; who wrote nothing may not. */
function warnInstances({ store = 'memory', instances }: FileValues, report: Report): void {
  if (store === 'memory' || instances !== undefined || report.failedWithin(['instances'])) return
  const message =
    'others can share this store, and the file does not say how many: each process would admit the whole budget while the store is away; write instances: and their number, 1 too'
  report.warn(['store'], message, 'key')
}

function warnLimits(values: RuleValues, plan: RulePlan, path: Path, report: Report): void {
  for (const { value, path: place } of listed(values.limits, [...path, 'limits'])) {
    warnBurst(value.limit, value.burst, place, report)
    for (const [key, override] of Object.entries(value.overrides ?? {})) {
      if (typeof override === 'object') warnBurst(override.limit, override.burst, [...place, 'overrides', key], report)
    }
    warnTtl(value, place, report)
    warnSkip(value, plan, place, report)
    warnCost(value, plan, place, report)
  }
}

function warnBurst(limit: string | number | undefined, burst: number | undefined, path: Path, report: Report): void {
  const rate = parseRate(`${limit}`)
  if (burst === undefined || !isRate(rate) || burst <= Math.max(rate.units, (rate.units * BURST_MS) / rate.periodMs))
    return
  report.warn(
    [...path, 'burst'],
    '{} is more than the limit lets pass in one period and in 10 s; is so much at once meant?',
  )
}

/** Longer than nearly every request takes. */
const LEAST_TTL_MS = 1000

function warnTtl({ ttl }: LimitValues, path: Path, report: Report): void {
  if (ttl === undefined || (durationMs(ttl) ?? LEAST_TTL_MS) >= LEAST_TTL_MS) return
  report.warn(
    [...path, 'ttl'],
    '{} is less than a second: the slot of whoever takes longer lapses while it still works, and more are at work than the limit says; write how long the longest may take',
  )
}

function warnSkip({ by }: LimitValues, plan: RulePlan, path: Path, report: Report): void {
  if (plan.limits.some((each) => each.limit.limit !== undefined && !each.by.some(isSkipped))) return
  for (const { value, path: place } of listed(by, [...path, 'by'])) {
    const dimension = plan.limits.flatMap((limit) => limit.by).find(({ name }) => name === value)
    if (dimension !== undefined && isSkipped(dimension)) {
      report.warn(
        place,
        '{} has missing: skip, so a request without a value meets no limit of this rule; add one by ip or global, or write missing: ip',
      )
    }
  }
}

function isSkipped({ missing }: Dimension): boolean {
  return missing === 'skip'
}

function warnCost(values: LimitValues, { rule, limits }: RulePlan, path: Path, report: Report): void {
  const own = limits.find(({ limit }) => limit.name === (values.name ?? defaultName(values)))?.limit
  if (own === undefined) return
  warnCapacity(own.limit, rule.cost, [...path, 'limit'], report)
  for (const { value, limit } of own.overrides) warnCapacity(limit, rule.cost, [...path, 'overrides', value], report)
}

function warnCapacity(limit: Limit | undefined, cost: number | CostHeader, path: Path, report: Report): void {
  if (limit === undefined || limit.limit === 0) return
  const [least, most] = typeof cost === 'number' ? [cost, cost] : [cost.min, cost.max]
  if (most <= limit.capacity) return
  const shown = report.source.written(path) === 'a mapping' ? '' : '{} '
  const [what, whose] =
    least > limit.capacity
      ? ['one request of this rule costs, so none can ever pass', 'cost']
      : ['max of the cost allows, so a request that costs so much can never pass', 'max']
  report.warn(path, `${shown}holds less than ${what}; write a larger burst or a smaller ${whose}`)
}
