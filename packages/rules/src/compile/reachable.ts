import type { RulePlan } from '../matching/plan.ts'
import type { Pattern } from '../paths/pattern.ts'
import { type FileValues, listed, type MatchValues, type RuleValues } from './context.ts'

/**
 * Why a rule can never decide anything: undefined where it can, or where that cannot be told. Only
 * rules whose conditions are written the same, or not at all, are seen to cover others.
 */
export function unreachable(
  values: RuleValues,
  plan: RulePlan,
  file: FileValues,
  plans: readonly RulePlan[],
): string | undefined {
  const valuesOf = new Map(listed(file.rules, []).map(({ value }) => [value.name, value]))
  for (const other of plans) {
    const otherValues = valuesOf.get(other.rule.name)
    if (other === plan || other.rule.mode === 'off' || other.otherwise || !otherValues) continue
    if (!covers(other, otherValues.match ?? {}, plan, values.match ?? {})) continue
    const name = JSON.stringify(other.rule.name)
    if (plan.otherwise) return `can never match: rule ${name} matches whatever this one would`
    if (other.rule.kind === 'deny' && plan.rule.kind !== 'deny')
      return `can never decide: rule ${name} denies whatever it matches`
    if (other.rule.kind === 'allow' && plan.rule.kind === 'limits') {
      return `can never decide: rule ${name} lets pass whatever it matches`
    }
  }
  return undefined
}

function covers(a: RulePlan, aMatch: MatchValues, b: RulePlan, bMatch: MatchValues): boolean {
  const paths =
    a.patterns.length === 0 ||
    (b.patterns.length > 0 && b.patterns.every((inner) => a.patterns.some((outer) => coversPath(outer, inner))))
  return (
    paths &&
    coversMethods(a, aMatch, b, bMatch) &&
    (['host', 'header', 'ip', 'not'] as const).every((key) => {
      return aMatch[key] === undefined || JSON.stringify(aMatch[key]) === JSON.stringify(bMatch[key])
    })
  )
}

function coversPath(outer: Pattern, inner: Pattern): boolean {
  if (outer.open ? outer.segments.length > inner.segments.length : inner.open) return false
  if (!outer.open && outer.segments.length !== inner.segments.length) return false
  return outer.segments.every((segment, i) => {
    const other = inner.segments[i]
    return segment.kind === 'param' || (other?.kind === 'static' && other.text === segment.text)
  })
}

/** Without a method: all but CORS preflight; a deny rule's: all. */
function coversMethods(a: RulePlan, aMatch: MatchValues, b: RulePlan, bMatch: MatchValues): boolean {
  const list = (match: MatchValues) => listed(match.method, []).map(({ value }) => value)
  const inner = list(bMatch)
  if (aMatch.method === undefined) {
    return a.rule.kind === 'deny' || (bMatch.method === undefined ? b.rule.kind !== 'deny' : !inner.includes('OPTIONS'))
  }
  const outer = new Set(list(aMatch))
  if (outer.has('GET')) outer.add('HEAD')
  return bMatch.method !== undefined && inner.every((method) => outer.has(method))
}
