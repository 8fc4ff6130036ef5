import {
  type Condition,
  headerCondition,
  hostCondition,
  ipCondition,
  methodCondition,
  NO_PREFLIGHT,
  notCondition,
} from '../matching/condition.ts'
import type { PathSettings } from '../paths/normalize.ts'
import { PathTrie } from '../paths/path-trie.ts'
import type { Pattern } from '../paths/pattern.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import { listed, type MatchValues, patternAt } from './context.ts'

export interface CompiledMatch {
  readonly patterns: readonly Pattern[]
  readonly conditions: readonly Condition[]
  readonly otherwise: boolean
  /** In words. */
  readonly text: string
}

/**
 * Compiles a rule's `match`. Without a method it is all methods, less CORS preflight; for a deny
 * rule preflight too, or a caller who is refused could go on asking.
 */
export function compileMatch(
  values: MatchValues,
  path: Path,
  paths: PathSettings,
  deny: boolean,
  report: Report,
): CompiledMatch {
  const conditions = conditionsOf(values, path, report)
  if (values.method === undefined && !deny) conditions.unshift(NO_PREFLIGHT)
  if (values.not !== undefined) conditions.push(compileNot(values.not, [...path, 'not'], paths, report))
  return {
    patterns: patternsOf(values, path, paths, report),
    conditions,
    otherwise: values.otherwise ?? false,
    text: textOf(values),
  }
}

type Conditions = NonNullable<MatchValues['not']>

function patternsOf(values: Conditions, path: Path, paths: PathSettings, report: Report): Pattern[] {
  return listed(values.path, [...path, 'path']).flatMap((each) => patternAt(each.value, each.path, paths, report) ?? [])
}

function conditionsOf(values: Conditions, path: Path, report: Report): Condition[] {
  const conditions: Condition[] = []
  const texts = (value: Conditions['method']) => listed(value, []).map((each) => each.value)
  if (values.method !== undefined) conditions.push(methodCondition(texts(values.method)))
  if (values.host !== undefined) conditions.push(hostCondition(texts(values.host)))
  const fields = Object.entries(values.header ?? {})
  if (values.header !== undefined && fields.length === 0 && !report.failedWithin([...path, 'header'])) {
    const message = 'is an empty mapping; write at least one field, or leave the key out'
    report.add([...path, 'header'], 'HEADGATE_RULES_VALUE', message)
  }
  for (const [name, value] of fields) conditions.push(headerCondition(name, texts(value)))
  if (values.ip !== undefined) conditions.push(ipCondition(texts(values.ip)))
  return conditions
}

function compileNot(values: Conditions, path: Path, paths: PathSettings, report: Report): Condition {
  const conditions = conditionsOf(values, path, report)
  if (values.path !== undefined) {
    const trie = new PathTrie<true>(paths)
    for (const pattern of patternsOf(values, path, paths, report)) trie.add(pattern, true)
    conditions.push({ test: (request) => trie.matches(request.path), why: '' })
  }
  if (conditions.length === 0 && !report.failedWithin(path)) {
    report.add(
      path,
      'HEADGATE_RULES_CONFLICT',
      'is empty, and so excludes everything; write what to exclude, or leave it out',
      { at: 'key' },
    )
  }
  return notCondition(conditions)
}

function textOf(values: MatchValues): string {
  const all = (value: Conditions['path']) =>
    listed(value, [])
      .map((each) => each.value)
      .join(' or ')
  const parts = [all(values.method), all(values.path) || 'every path']
  if (values.host !== undefined) parts.push(`on ${all(values.host)}`)
  if (values.header !== undefined) parts.push(`with ${Object.keys(values.header).join(' and ')}`)
  if (values.ip !== undefined) parts.push(`from ${all(values.ip)}`)
  if (values.not !== undefined) parts.push('with exceptions')
  if (values.otherwise) parts.push('where no other rule matches')
  return parts.filter((part) => part !== '').join(' ')
}
