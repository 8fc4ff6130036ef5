import { fixedWindow, HeadgateError, type InvalidArgumentError, type Limit, tokenBucket } from 'headgate'
import type { Dimension } from '../dimensions/dimension.ts'
import type { LimitPlan, Override, OverrideTable } from '../matching/plan.ts'
import { isRate, parseRate, type Rate, UNLIMITED } from '../rate.ts'
import type { CompiledOverride } from '../rule-file.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import { type LimitValues, listed } from './context.ts'
import type { Dimensions } from './dimensions.ts'

/** A limit of the file; undefined where it has errors. */
export function compileLimit(
  values: LimitValues,
  path: Path,
  dimensions: Dimensions,
  report: Report,
): LimitPlan | undefined {
  const by = compileBy(values, path, dimensions, report)
  checkAlgorithm(values, path, report)
  const limit = values.limit === undefined ? undefined : limitOf(values.limit, values.burst, values, path, report)
  const overrides = compileOverrides(values, path, by, report)
  if (by.length === 0 || by.includes(undefined) || values.limit === undefined) return undefined
  const known = by as Dimension[]
  return {
    by: known,
    limit: {
      name: values.name ?? defaultName(values),
      by: known.map(({ name }) => name),
      text: values.limit,
      limit,
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

function checkAlgorithm(values: LimitValues, path: Path, report: Report): void {
  const window = values.algorithm === 'fixed-window'
  if (window && values.burst !== undefined) {
    report.add([...path, 'burst'], 'HEADGATE_RULES_CONFLICT', 'does not fit algorithm: fixed-window; leave it out', {
      at: 'key',
    })
  }
  if (!window && values.align !== undefined) {
    report.add(
      [...path, 'align'],
      'HEADGATE_RULES_CONFLICT',
      'needs algorithm: fixed-window; add that, or leave it out',
      { at: 'key' },
    )
  }
}

type Numbers = Pick<LimitValues, 'algorithm' | 'align'>

/** The numbers as a limit; undefined for `unlimited`, and where they are wrong. */
function limitOf(
  text: string,
  burst: number | undefined,
  numbers: Numbers,
  path: Path,
  report: Report,
): Limit | undefined {
  const conflict = (message: string) =>
    report.add([...path, 'burst'], 'HEADGATE_RULES_CONFLICT', message, { at: 'key' })
  if (text === UNLIMITED) {
    if (burst !== undefined) conflict('contradicts unlimited; keep one of the two')
    return undefined
  }
  const rate = parseRate(text)
  if (!isRate(rate)) return undefined
  if (rate.units === 0 && burst !== undefined) {
    conflict('contradicts a limit of 0, which refuses all; leave it out')
    return undefined
  }
  try {
    const options = { limit: rate.units, period: rate.periodMs }
    if (numbers.algorithm === 'fixed-window') {
      return fixedWindow(numbers.align === undefined ? options : { ...options, align: numbers.align })
    }
    return tokenBucket(burst === undefined ? options : { ...options, burst })
  } catch (error) {
    if (!HeadgateError.is(error) || !('argument' in error)) throw error
    refuse(error as InvalidArgumentError, rate, burst, path, report)
    return undefined
  }
}

function refuse(error: InvalidArgumentError, rate: Rate, burst: number | undefined, path: Path, report: Report): void {
  const place = burst !== undefined && error.argument === 'burst' ? [...path, 'burst'] : limitPath(path, report)
  // The library was given the period in ms; the file's author wrote it otherwise.
  const problem = error.message
    .slice(error.argument.length + 2)
    .replace(`limit ${rate.units} in ${rate.periodMs} ms`, `limit ${rate.text}`)
    .replace(`${rate.periodMs} is longer than`, `the period of ${rate.text} is longer than`)
  const hidden =
    report.source.expanded([...path, 'limit']) ||
    report.source.expanded([...path, 'burst']) ||
    report.source.expanded(path)
  const message = hidden ? 'the numbers leave the range in which arithmetic is exact; write smaller ones' : problem
  report.add(place, 'HEADGATE_RULES_RANGE', message)
}

/** An override may be a rate alone. */
function limitPath(path: Path, report: Report): Path {
  const inner = [...path, 'limit']
  return report.source.written(inner) === undefined ? path : inner
}

function compileOverrides(
  values: LimitValues,
  path: Path,
  by: readonly (Dimension | undefined)[],
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
    const { limit: text, burst } = typeof override === 'string' ? { limit: override, burst: undefined } : override
    if (values.algorithm === 'fixed-window' && burst !== undefined) {
      report.add([...at, 'burst'], 'HEADGATE_RULES_CONFLICT', 'does not fit algorithm: fixed-window; leave it out', {
        at: 'key',
      })
    }
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
    if (text === undefined) return []
    return [{ value, text, limit: limitOf(text, burst, values, at, report) }]
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
