import type { RulePlan } from '../matching/plan.ts'
import type { Pattern } from '../paths/pattern.ts'
import { pathText } from '../source/tree.ts'
import { type FileValues, listed, type MatchValues } from './context.ts'

interface Written {
  /** Its place, such as `rules[3]`. */
  readonly place: string
  readonly plan: RulePlan
  readonly match: MatchValues
}

/** Finds rules that can never decide anything. */
export class Reachability {
  /** Rules that are on and do not wait for the others. */
  private readonly ordinary: readonly Written[]
  private readonly lists: readonly Written[]

  constructor(file: FileValues, plans: readonly RulePlan[]) {
    const written = new Map(listed(file.rules, ['rules']).map(({ value, path }) => [value.name, { value, path }]))
    this.ordinary = plans
      .filter(({ rule, otherwise }) => rule.mode !== 'off' && !otherwise)
      .map((plan) => {
        const { value, path } = written.get(plan.rule.name) ?? {}
        return { plan, match: value?.match ?? {}, place: pathText(path ?? []) }
      })
    this.lists = this.ordinary.filter(({ plan }) => plan.rule.kind !== 'limits')
  }

  /**
   * Why a rule can never decide anything: undefined where it can, or where that cannot be told. Only
   * rules whose conditions are written the same, or not at all, are seen to cover others.
   */
  reason(plan: RulePlan, match: MatchValues): string | undefined {
    const { kind } = plan.rule
    const others = plan.otherwise ? this.ordinary : this.lists
    for (const other of others) {
      const beats = plan.otherwise || (other.plan.rule.kind === 'deny' ? kind !== 'deny' : kind === 'limits')
      if (!beats || other.plan === plan || !covers(other.plan, other.match, plan, match)) continue
      if (plan.otherwise) return `can never match: ${other.place} matches whatever this one would`
      const does = other.plan.rule.kind === 'deny' ? 'denies' : 'lets pass'
      return `can never decide: ${other.place} ${does} whatever it matches`
    }
    return undefined
  }
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
