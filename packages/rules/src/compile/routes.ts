import type { PathSettings } from '../paths/normalize.ts'
import { PathTrie } from '../paths/path-trie.ts'
import { isPattern, type Pattern, parsePattern } from '../paths/pattern.ts'
import type { Route } from '../rule-file.ts'
import { durationMs } from '../schema/values.ts'
import type { Report } from '../source/report.ts'
import { pathText } from '../source/tree.ts'
import { type FileValues, listed, patternAt } from './context.ts'

type RouteValues = NonNullable<NonNullable<FileValues['gateway']>['routes']>

interface Ranked {
  readonly route: Route
  readonly pattern: Pattern
}

/** The routes in the order in which they are tried: exact before longest. */
export function compileRoutes(values: RouteValues, paths: PathSettings, report: Report): Route[] {
  const ranked: Ranked[] = []
  const seen = new Map<string, string>()
  for (const { value, path } of listed(values, ['gateway', 'routes'])) {
    if (value.path === undefined) continue
    const pattern = patternAt(value.path, [...path, 'path'], paths, report)
    if (pattern === undefined) continue
    const same = JSON.stringify([
      pattern.segments.map((segment) => (segment.kind === 'param' ? 0 : segment.text)),
      pattern.open,
    ])
    const other = seen.get(same)
    if (other !== undefined)
      report.add([...path, 'path'], 'HEADGATE_RULES_DUPLICATE', `{} serves the same paths as ${other}; keep one`)
    seen.set(same, pathText(path))
    const stripPrefix = value.stripPrefix ?? false
    if (stripPrefix && !(pattern.open && pattern.segments.every((segment) => segment.kind === 'static'))) {
      report.add(
        [...path, 'stripPrefix'],
        'HEADGATE_RULES_CONFLICT',
        'needs a path that ends with /* and has no parameters',
      )
    }
    const upstreams = listed(value.upstream, []).map((upstream) => new URL(upstream.value).origin)
    const timeoutMs = durationMs(value.timeout ?? '30s') ?? 0
    ranked.push({ pattern, route: { path: value.path, upstreams, host: value.host ?? 'pass', stripPrefix, timeoutMs } })
  }
  return ranked.sort(byPrecedence).map(({ route }) => route)
}

/** Exact before parameters before wildcards; then the longer; then the one that is static earlier. */
function byPrecedence({ pattern: a }: Ranked, { pattern: b }: Ranked): number {
  const params = (pattern: Pattern) => pattern.segments.filter((segment) => segment.kind === 'param').length
  const open = Number(a.open) - Number(b.open)
  if (open !== 0) return open
  if (a.segments.length !== b.segments.length) return b.segments.length - a.segments.length
  if (params(a) !== params(b)) return params(a) - params(b)
  const kinds = (pattern: Pattern) =>
    pattern.segments.map((segment) => (segment.kind === 'static' ? '0' : '1')).join('')
  return kinds(a) < kinds(b) ? -1 : Number(kinds(a) !== kinds(b))
}

/** Finds the route of a normalised path among routes in order of precedence. */
export function routeFinder(routes: readonly Route[], paths: PathSettings): (path: string) => Route | undefined {
  const trie = new PathTrie<number>(paths)
  routes.forEach((route, i) => {
    const pattern = parsePattern(route.path, paths)
    if (isPattern(pattern)) trie.add(pattern, i)
  })
  return (path) => {
    const found: number[] = []
    trie.find(path, found)
    return found.length === 0 ? undefined : routes[Math.min(...found)]
  }
}
