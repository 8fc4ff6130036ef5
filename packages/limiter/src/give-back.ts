import type { Decision } from './decision.ts'
import { chargesFor, resultOf } from './derive.ts'
import type { Check, Operation, Part } from './store.ts'

/**
 * What takes back a charge of one part of a check where another part did not admit, or gave less.
 * @param parts as they were judged for the decision
 * @param kept of each charge, so many units stay
 */
export function givesBack(
  decision: Decision,
  parts: readonly Part[],
  kept: number,
  operation: Operation | undefined,
): Check[] {
  if (operation?.name === 'reserve') {
    // What its id held before is not this call's to give back.
    const repeated = resultOf(decision) === 1
    if (kept > 0 || repeated) return []
    return [onKeys(withoutCost(parts), { name: 'commit', args: [operation.args[0] as number] })]
  }
  const back = chargesFor(decision, parts).map(({ cost, chargedUs, instantUs }, i) => {
    const part = parts[i] as Part
    return { ...part, cost: Math.max(0, cost - kept), id: part.limit.holdsSlots ? part.id : instantUs, chargedUs }
  })
  const charged = back.filter(({ cost }) => cost > 0)
  const units = charged.filter(({ limit }) => limit.holdsSlots !== true)
  const slots = charged.filter(({ limit }) => limit.holdsSlots === true)
  return [onKeys(units, { name: 'refund', args: [0, 0, 0] }), onKeys(slots, { name: 'release', args: [] })].filter(
    ({ parts }) => parts.length > 0,
  )
}

/** How much of what was charged for one part of a check the others admitted too. */
export function keptOf(decision: Decision, operation: Operation | undefined): number {
  if (!decision.allowed) return 0
  const granted = operation?.name === 'take-up-to' ? resultOf(decision) : undefined
  return granted ?? Number.MAX_SAFE_INTEGER
}

/** A refund, and a place that is given up, go by the instant of the charge, which each store tells by its own clock. */
export function dated(check: Check): Check {
  const { operation, parts } = check
  if (operation?.name !== 'refund' && operation?.name !== 'vacate') return check
  const [id = 0, , rest = 0] = operation.args
  return { ...check, operation: { name: operation.name, args: [id, parts[0]?.chargedUs ?? 0, rest] } }
}

function onKeys(parts: Part[], operation: Operation): Check {
  return { parts, peek: false, operation }
}

function withoutCost(parts: readonly Part[]): Part[] {
  return parts.map((part) => ({ ...part, cost: 0 }))
}
