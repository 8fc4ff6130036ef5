import type { MatchedRule } from 'headgate'
import type { LimitPlan, RulePlan } from '../matching/plan.ts'
import type { PathSettings } from '../paths/normalize.ts'
import type { CompiledRule, CostHeader } from '../rule-file.ts'
import { durationMs } from '../schema/values.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import { type FileValues, listed, type RuleValues } from './context.ts'
import type { Dimensions } from './dimensions.ts'
import { compileLimit, defaultName } from './limits.ts'
import { type CompiledMatch, compileMatch } from './match.ts'

/** All rules of the file, those that are off too, as plans in the order of the file. */
export function compileRules(
  values: FileValues,
  dimensions: Dimensions,
  paths: PathSettings,
  report: Report,
): RulePlan[] {
  const names = new Map<string, Path>()
  return listed(values.rules, ['rules']).flatMap(({ value, path }) => {
    checkRuleName(value.name, path, names, report)
    return compileRule(value, values.defaults, path, dimensions, paths, report) ?? []
  })
}

function checkRuleName(name: string | undefined, path: Path, names: Map<string, Path>, report: Report): void {
  if (name === undefined) return
  if (names.has(name)) {
    report.add(
      [...path, 'name'],
      'HEADGATE_RULES_DUPLICATE',
      `{} is the name of rules[${names.get(name)?.[1]}] too; give them different names`,
    )
  } else names.set(name, path)
}

function compileRule(
  values: RuleValues,
  defaults: FileValues['defaults'],
  path: Path,
  dimensions: Dimensions,
  paths: PathSettings,
  report: Report,
): RulePlan | undefined {
  const kind = kindOf(values, path, report)
  const match = compileMatch(values.match ?? {}, [...path, 'match'], paths, kind === 'deny', report)
  const limits = compileLimits(values, match, path, dimensions, report)
  const candidate = compileCandidate(values, limits, match, path, dimensions, report)
  const waiting = waitingOf(values, path, report)
  const written = values.mode ?? defaults?.mode ?? 'enforce'
  const mode = written === false ? 'off' : written
  refuseBeside(values, mode, path, report)
  const cost = costOf(values, path, report)
  if (mode === 'shadow') refuseOwn(values.limits, [...path, 'limits'], 'in mode: shadow', report)
  if (values.penalty !== undefined) refuseOwn(values.limits, [...path, 'limits'], 'beside penalty', report, false)
  if (values.countIf !== undefined && limits.some(({ limit }) => limit.limit?.holdsSlots === true)) {
    const message =
      'does not fit a limit of algorithm: concurrency, whose slots are held while a request lasts; keep one'
    report.add([...path, 'countIf'], 'HEADGATE_RULES_CONFLICT', message, { at: 'key' })
  }
  if (values.name === undefined || kind === undefined) return undefined
  const rule: CompiledRule = {
    name: values.name,
    ...(values.description === undefined ? {} : { description: values.description }),
    kind,
    mode,
    onStoreFailure: values.onStoreFailure ?? defaults?.onStoreFailure ?? 'local',
    accuracy: values.accuracy ?? 'exact',
    headers: values.headers ?? defaults?.headers ?? 'standard',
    disclose: values.disclose ?? false,
    cost,
    match: match.text,
    limits: limits.map(({ limit }) => limit),
    candidate: candidate.map(({ limit }) => limit),
    ...waiting,
    ...(values.countIf === undefined ? {} : { countIf: statusesOf(values.countIf) }),
    ...penaltyOf(values.penalty),
  }
  const globalLimits = rule.limits.filter(({ by }) => by.length === 1 && by[0] === 'global').map(({ name }) => name)
  const { headers, disclose, maxWaitMs, afterWait, countIf } = rule
  const matched: MatchedRule = {
    name: rule.name,
    headers,
    disclose,
    globalLimits,
    shadow: rule.mode === 'shadow',
    maxWaitMs,
    afterWait,
    ...(countIf === undefined ? {} : { countIf }),
  }
  return { rule, ...match, limits, candidate, matched }
}

/** What this process counts, or holds, for itself has no counter beside it that others could be judged by. */
function refuseOwn(limits: RuleValues['limits'], path: Path, where: string, report: Report, slotsToo = true): void {
  for (const { value, path: place } of listed(limits, path)) {
    const isSlots = slotsToo && value.algorithm === 'concurrency'
    const key = isSlots ? 'algorithm' : value.scope === undefined ? undefined : 'scope'
    if (key !== undefined) report.add([...place, key], 'HEADGATE_RULES_UNSUPPORTED', `{} is not supported yet ${where}`)
  }
}

/** Limits that would take the place of those of the same names. */
function compileCandidate(
  values: RuleValues,
  live: readonly LimitPlan[],
  match: CompiledMatch,
  path: Path,
  dimensions: Dimensions,
  report: Report,
): LimitPlan[] {
  if (values.candidate === undefined) return []
  const place = [...path, 'candidate']
  refuseOwn(values.candidate.limits, [...place, 'limits'], 'in a candidate', report)
  const plans = compileLimits({ limits: values.candidate.limits }, match, place, dimensions, report)
  if (values.mode === 'shadow') {
    report.add(
      place,
      'HEADGATE_RULES_CONFLICT',
      'has no meaning in mode: shadow, where nothing is enforced; keep one',
      {
        at: 'key',
      },
    )
  }
  if (values.limits === undefined) return plans
  for (const { limit } of plans) {
    if (live.some((each) => each.limit.name === limit.name) || report.failedWithin([...path, 'limits'])) continue
    report.add(
      place,
      'HEADGATE_RULES_REFERENCE',
      `takes the place of a limit ${limit.name}, which this rule does not have; it has ${live.map((each) => each.limit.name).join(', ')}`,
    )
  }
  return plans
}

/** What goes by the answer, or makes it wait, cannot be judged beside it. */
function refuseBeside(values: RuleValues, mode: CompiledRule['mode'], path: Path, report: Report): void {
  const refuse = (key: string, message: string) =>
    report.add([...path, key], 'HEADGATE_RULES_UNSUPPORTED', message, { at: 'key' })
  if (mode === 'shadow') {
    for (const key of ['countIf', 'maxWait', 'afterWait', 'penalty'] as const) {
      if (values[key] !== undefined)
        refuse(key, 'is not supported yet in mode: shadow; leave it out, or enforce the rule')
    }
  }
  if (values.countIf !== undefined && values.candidate !== undefined) {
    refuse('candidate', 'is not supported yet beside countIf; leave one of the two out')
  }
}

function waitingOf(values: RuleValues, path: Path, report: Report): Pick<CompiledRule, 'maxWaitMs' | 'afterWait'> {
  const maxWaitMs = values.maxWait === undefined ? 0 : (durationMs(values.maxWait) ?? 0)
  const { afterWait = 'refuse' } = values
  if (values.afterWait !== undefined && maxWaitMs === 0) {
    report.add(
      [...path, 'afterWait'],
      'HEADGATE_RULES_CONFLICT',
      'needs a maxWait above 0ms; write one, or leave it out',
      {
        at: 'key',
      },
    )
  }
  return { maxWaitMs, afterWait }
}

function statusesOf({ status }: NonNullable<RuleValues['countIf']>): ReadonlySet<number> {
  return new Set(listed(status, []).map(({ value }) => value))
}

function penaltyOf(values: RuleValues['penalty']): Pick<CompiledRule, 'penalty'> {
  const { refusals, within, block } = values ?? {}
  const [withinMs, blockMs] = [within, block].map((text) => (text === undefined ? undefined : durationMs(text)))
  if (refusals === undefined || withinMs === undefined || blockMs === undefined) return {}
  return { penalty: { refusals, withinMs, blockMs } }
}

/** Keys that a rule without limits has no use for. */
const MEANINGLESS = [
  'cost',
  'onStoreFailure',
  'headers',
  'disclose',
  'candidate',
  'maxWait',
  'afterWait',
  'countIf',
  'penalty',
] as const

/** What a rule does; undefined where that cannot be told. */
function kindOf(values: RuleValues, path: Path, report: Report): CompiledRule['kind'] | undefined {
  const { allow = false, deny = false, limits } = values
  const refuse = (key: string, message: string) =>
    report.add([...path, key], 'HEADGATE_RULES_CONFLICT', message, { at: 'key' })
  if (allow && deny) refuse('allow', 'contradicts deny: true; keep one of the two')
  if (!allow && !deny) {
    if (limits !== undefined) return 'limits'
    if (!report.failedWithin(path))
      report.add(path, 'HEADGATE_RULES_VALUE', 'does nothing; write limits, allow: true or deny: true')
    return undefined
  }
  const kind = deny ? 'deny' : 'allow'
  if (limits !== undefined) refuse('limits', `contradicts ${kind}: true; keep one of the two`)
  for (const key of MEANINGLESS) {
    if (values[key] !== undefined) refuse(key, `has no meaning with ${kind}: true; leave it out`)
  }
  return kind
}

function compileLimits(
  values: Pick<RuleValues, 'limits'>,
  match: CompiledMatch,
  path: Path,
  dimensions: Dimensions,
  report: Report,
): LimitPlan[] {
  const names = new Set<string>()
  return listed(values.limits, [...path, 'limits']).flatMap(({ value, path: place }) => {
    const name = value.name ?? defaultName(value)
    if (names.has(name) && name !== '') {
      const at = value.name === undefined ? place : [...place, 'name']
      report.add(
        at,
        'HEADGATE_RULES_DUPLICATE',
        'has the name of another limit of this rule; give it a name: of its own',
      )
    }
    names.add(name)
    checkParameters(value.by, [...place, 'by'], match, dimensions, report)
    return compileLimit(value, place, dimensions, report) ?? []
  })
}

type By = Parameters<typeof defaultName>[0]['by']

/** A path parameter must stand in one of the rule's patterns. */
function checkParameters(by: By, path: Path, match: CompiledMatch, dimensions: Dimensions, report: Report): void {
  for (const { value, path: place } of listed(by, path)) {
    const parameter = dimensions.parameters.get(value)
    if (parameter === undefined || report.failedWithin([...path.slice(0, 2), 'match', 'path'])) continue
    const has = match.patterns.some(({ segments }) =>
      segments.some((each) => each.kind === 'param' && each.name === parameter),
    )
    if (!has) {
      report.add(
        place,
        'HEADGATE_RULES_REFERENCE',
        `{} counts by :${parameter}, which no path of this rule has; write it into match.path`,
      )
    }
  }
}

function costOf(values: RuleValues, path: Path, report: Report): number | CostHeader {
  const { cost = 1 } = values
  if (typeof cost === 'number') return cost
  const { header = '', min = 1, max = Math.max(min, 1), fromAnyone = false } = cost
  if (max < min) {
    report.add(
      [...path, 'cost', 'max'],
      'HEADGATE_RULES_CONFLICT',
      '{} is below min; write a larger one, or a smaller min',
    )
  }
  return { header: header.toLowerCase(), min, max, fromAnyone }
}
