import type { RuleRequest } from 'headgate'
import { singleValue } from '../dimensions/fields.ts'
import type { CostHeader } from '../rule-file.ts'

const COST = /^\d{1,15}$/

/** Why a request costs what it does, where a field could say; undefined where the field said it. */
export function costNote(cost: number | CostHeader, request: RuleRequest): string | undefined {
  if (typeof cost === 'number') return undefined
  const { header, fromAnyone } = cost
  const values = request.header(header) ?? []
  if (values.length === 0) return `${header} is absent, so it costs min`
  if (!fromAnyone && !request.trusted)
    return `${header} is not read: ${request.ip} is no trusted proxy, and the cost has no fromAnyone: true`
  return COST.test(singleValue(values)?.trim() ?? '') ? undefined : `${header} is unreadable, so it costs max`
}

/**
 * What a request costs under a rule. From a field: clamped to min…max; absent (or from a peer that is
 * not trusted to say it) is min; unreadable, or said twice differently, is max.
 */
export function costOf(cost: number | CostHeader, request: RuleRequest): number {
  if (typeof cost === 'number') return cost
  const { header, min, max, fromAnyone } = cost
  const values = fromAnyone || request.trusted ? request.header(header) : undefined
  if (values === undefined || values.length === 0) return min
  const text = singleValue(values)?.trim()
  if (text === undefined || !/^\d+$/.test(text)) return max
  return COST.test(text) ? Math.min(Math.max(Number(text), min), max) : max
}
