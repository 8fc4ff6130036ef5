import type { PathSettings } from '../paths/normalize.ts'
import { isPattern, type Pattern, parsePattern } from '../paths/pattern.ts'
import type { FileInput } from '../schema/file.ts'
import type { Salvaged } from '../schema/read.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'

/** A file's values after the schema: what was wrong is reported, and missing here. */
export type FileValues = Salvaged<FileInput>
export type RuleValues = NonNullable<NonNullable<FileValues['rules']>[number]>
export type LimitValues = NonNullable<NonNullable<RuleValues['limits']>[number]>
export type MatchValues = NonNullable<RuleValues['match']>

/** Compiles a pattern; what is wrong with it goes to the report. */
export function patternAt(text: string, path: Path, paths: PathSettings, report: Report): Pattern | undefined {
  const pattern = parsePattern(text, paths)
  if (isPattern(pattern)) return pattern
  report.add(path, 'HEADGATE_RULES_VALUE', pattern.message, { fix: pattern.fix })
  return undefined
}

/** One value or a list of them, with each one's place; wrong entries were dropped. */
export function listed<T>(value: T | readonly (T | undefined)[] | undefined, path: Path): { value: T; path: Path }[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) return [{ value: value as T, path }]
  const list: readonly (T | undefined)[] = value
  return list.flatMap((item, i) => (item === undefined ? [] : [{ value: item, path: [...path, i] }]))
}
