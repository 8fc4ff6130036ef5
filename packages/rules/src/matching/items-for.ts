import { isIP } from 'node:net'
import { type CheckItem, EncodedKey, HeadgateError } from 'headgate'
import { ipKey, UNIX } from 'headgate/http'
import { ADDRESS_ROOM, addressRoom, type Dimension } from '../dimensions/dimension.ts'
import { closest } from '../suggest.ts'
import { item, limitFor } from './items.ts'
import type { LimitPlan, RulePlan } from './plan.ts'

type Values = Readonly<Record<string, string>>

const usage = (message: string) => new HeadgateError('HEADGATE_USAGE', message)

/** The limits of a rule for values that an operator gives. @throws HeadgateError HEADGATE_USAGE */
export function itemsFor(plan: RulePlan, limit: string | undefined, values: Values): CheckItem[] {
  const { rule, limits } = plan
  const chosen = limit === undefined ? limits.filter((each) => isGiven(each, values)) : [limitNamed(plan, limit)]
  const known = new Set((limit === undefined ? limits : chosen).flatMap(({ by }) => by.map(({ name }) => name)))
  for (const name of Object.keys(values)) {
    if (known.has(name)) continue
    const counted = known.size === 0 ? 'has no limits' : `counts by ${[...known].join(', ')}`
    throw usage(`rule ${rule.name} ${counted}, not by ${JSON.stringify(name)}`)
  }
  if (chosen.length === 0) {
    const needs = limits.map(({ limit: { name, by } }) => `${name} needs ${by.join(' and ')}`).join('; ')
    throw usage(
      needs === ''
        ? `rule ${rule.name} has no limits`
        : `no limit of rule ${rule.name} fits the values given: ${needs}`,
    )
  }
  return chosen.flatMap((each) => itemOf(plan, each, values) ?? [])
}

export function unknownRule(name: string, names: readonly string[]): HeadgateError {
  const near = closest(name, names)
  const way = near === undefined ? `the file has ${names.join(', ') || 'none'}` : `did you mean ${near}`
  return usage(`there is no rule ${JSON.stringify(name)}; ${way}`)
}

function limitNamed({ rule, limits }: RulePlan, name: string): LimitPlan {
  const found = limits.find(({ limit }) => limit.name === name)
  if (found) return found
  const names = limits.map(({ limit }) => limit.name)
  const near = closest(name, names)
  const way = near === undefined ? `it has ${names.join(', ') || 'none'}` : `did you mean ${near}`
  throw usage(`rule ${rule.name} has no limit ${JSON.stringify(name)}; ${way}`)
}

/** Whether a limit is meant: all its values are given, and at least one where any is. */
function isGiven({ by }: LimitPlan, values: Values): boolean {
  const needed = by.filter(({ name }) => name !== 'global')
  if (Object.keys(values).length > 0 && needed.length === 0) return false
  return needed.every(({ name }) => Object.hasOwn(values, name))
}

function itemOf({ rule }: RulePlan, plan: LimitPlan, values: Values): CheckItem | undefined {
  const parts = plan.by.map((dimension): Part => {
    if (dimension.name === 'global') return { value: '', text: '' }
    const value = Object.hasOwn(values, dimension.name) ? values[dimension.name] : undefined
    if (value === undefined) throw usage(`limit ${rule.name}/${plan.limit.name} needs a value for ${dimension.name}`)
    return partOf(dimension, value)
  })
  const key = new EncodedKey(parts.map(({ text }) => text).join(':'))
  const value = parts[0]?.value
  const limit =
    plan.overrides === undefined || value === undefined ? plan.limit.limit : limitFor(plan, plan.overrides, value)
  const cost = typeof rule.cost === 'number' ? rule.cost : rule.cost.min
  return item(plan, rule, limit, key, cost)
}

interface Part {
  /** undefined: the caller has none, and is counted by address. */
  readonly value: string | undefined
  /** In keys. */
  readonly text: string
}

/** A caller without a value is named as its counter is shown: `~ip:203.0.113.7`. */
function partOf(dimension: Dimension, given: string): Part {
  const address = given.startsWith(ADDRESS_ROOM) ? given.slice(ADDRESS_ROOM.length).replace(/%3A/gi, ':') : ''
  if (dimension.problem === undefined && dimension.missing === 'ip' && (isIP(address) !== 0 || address === UNIX)) {
    return { value: undefined, text: addressRoom(ipKey(address)) }
  }
  const problem = dimension.problem?.(given)
  if (problem !== undefined) throw usage(`${dimension.name}: ${JSON.stringify(given)} ${problem}`)
  const value = dimension.canonical(given)
  return { value, text: dimension.encode(value) }
}
