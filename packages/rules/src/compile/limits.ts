import type { Dimension } from '../dimensions/dimension.ts'
import type { LimitPlan, Override, OverrideTable } from '../matching/plan.ts'
import type { CompiledOverride } from '../rule-file.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import { algorithmOf, checkKeys, checkSettings, limitOf, type Numbers, wordsOf } from './algorithms.ts'
import { type LimitValues, listed } from './context.ts'
import type { Dimensions } from './dimensions.ts'

/** Numbers as a limit, and in words; undefined where the algorithm is not known. */
type Make = (numbers: Numbers, at: Path) => Pick<CompiledOverride, 'text' | 'words' | 'limit'> | undefined

/** A limit of the file; undefined where it has errors. */
export function compileLimit(
  values: LimitValues,
  path: Path,
  dimensions: Dimensions,
  report: Report,
): LimitPlan | undefined {
  const by = compileBy(values, path, dimensions, report)
  const algorithm = algorithmOf(values, path, report)
  if (algorithm !== undefined) {
    checkKeys(values, algorithm, path, report)
    if (values.limit === undefined) checkSettings(algorithm, values, path, report)
  }
  const make: Make = (numbers, at) => {
    if (algorithm === undefined) return undefined
    const limit = limitOf(numbers, algorithm, values, at, path, report)
    return { text: `${numbers.limit}`, words: wordsOf(numbers, algorithm, values), limit }
  }
  const own = values.limit === undefined ? undefined : make({ limit: values.limit, burst: values.burst }, path)
  const overrides = compileOverrides(values, path, by, make, report)
  if (by.length === 0 || by.includes(undefined) || own === undefined) return undefined
  const known = by as Dimension[]
  return {
    by: known,
    limit: {
      name: values.name ?? defaultName(values),
      by: known.map(({ name }) => name),
      ...own,
      ...(values.align === 'calendar' ? { timeZone: values.timeZone ?? 'UTC' } : {}),
      overrides,
    },
    overrides: overrides.length === 0 ? undefined : tableOf(overrides, known[0] as Dimension),
  }
}

/** A limit's name where it has none of its own. */
export function defaultName(values: LimitValues): string {
  return listed(values.by, [])
    .map(({ value }) => value)
    .join('+')
}

/** undefined entries: a dimension that has errors of its own, or is not known. */
function compileBy(values: LimitValues, path: Path, dimensions: Dimensions, report: Report): (Dimension | undefined)[] {
  const seen = new Set<string>()
  return listed(values.by, [...path, 'by']).map(({ value, path: place }) => {
    if (seen.has(value)) report.add(place, 'HEADGATE_RULES_DUPLICATE', '{} stands twice; keep one')
    seen.add(value)
    if (!dimensions.names.includes(value)) {
      const message = '{} is no dimension; define it under dimensions, or write one that is known'
      report.add(place, 'HEADGATE_RULES_REFERENCE', message, { options: dimensions.names })
    }
    return dimensions.byName.get(value)
  })
}

function compileOverrides(
  values: LimitValues,
  path: Path,
  by: readonly (Dimension | undefined)[],
  make: Make,
  report: Report,
): CompiledOverride[] {
  const place = [...path, 'overrides']
  const entries = Object.entries(values.overrides ?? {})
  const dimension = by[0]
  if (entries.length > 0 && (by.length > 1 || dimension?.name === 'global')) {
    report.add(place, 'HEADGATE_RULES_CONFLICT', 'needs a limit by one dimension that has values', { at: 'key' })
    return []
  }
  const seen = new Set<string>()
  return entries.flatMap(([value, override]) => {
    if (override === undefined) return []
    const at = [...place, value]
    const { limit, burst } = typeof override === 'object' ? override : { limit: override, burst: undefined }
    const algorithm = algorithmOf(values, path, report)
    if (algorithm !== undefined) checkKeys({ burst }, algorithm, at, report)
    if (value.slice(0, -1).includes('*')) {
      report.add(at, 'HEADGATE_RULES_VALUE', 'has a * that is not at its end; only one final * is a wildcard', {
        at: 'key',
      })
      return []
    }
    const problem = value.endsWith('*') ? undefined : dimension?.problem?.(value)
    if (problem !== undefined) report.add(at, 'HEADGATE_RULES_VALUE', problem, { at: 'key' })
    const spelled = `${dimension?.canonical(value.replace(/\*$/, '')) ?? value}${value.endsWith('*') ? '*' : ''}`
    if (seen.has(spelled))
      report.add(at, 'HEADGATE_RULES_DUPLICATE', 'is the same value as another override; keep one', { at: 'key' })
    seen.add(spelled)
    const made = limit === undefined ? undefined : make({ limit, burst }, at)
    return made === undefined ? [] : [{ value, ...made }]
  })
}

/** Values in the form in which the dimension reads them, so that one spelling in the file is enough. */
function tableOf(entries: readonly CompiledOverride[], dimension: Dimension): OverrideTable {
  const overrides = entries.map(({ value, limit }): Override & { prefix: boolean } => {
    const prefix = value.endsWith('*')
    const text = dimension.canonical(prefix ? value.slice(0, -1) : value)
    return { text, written: value, limit, prefix }
  })
  return {
    exact: new Map(overrides.filter(({ prefix }) => !prefix).map((override) => [override.text, override])),
    prefixes: overrides.filter(({ prefix }) => prefix).sort((a, b) => b.text.length - a.text.length),
  }
}
