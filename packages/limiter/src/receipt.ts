import { InvalidArgumentError, show } from './errors.ts'
import type { Part } from './store.ts'

/** What begins every receipt: the form that it is written in. */
const FORM = 'r1'

/**
 * What was charged, for {@link readReceipt}: when, and for each limit its units and the instant by which they
 * can be given back, in the order of the check.
 */
export function writeReceipt(parts: readonly Part[], instantsUs: readonly number[], chargedUs: number): string {
  return [
    FORM,
    chargedUs.toString(36),
    ...parts.map(({ cost }, i) => `${cost.toString(36)}-${(instantsUs[i] as number).toString(36)}`),
  ].join('.')
}

/** A charge of one limit. */
export interface Charge {
  readonly cost: number
  readonly instantUs: number
}

const CHARGE = /^([0-9a-z]{1,11})-([0-9a-z]{1,11})$/

/** @throws InvalidArgumentError unless it is the receipt of a check of so many limits */
export function readReceipt(receipt: unknown, limits: number): { chargedUs: number; charges: Charge[] } {
  const [form, at = '', ...texts] = typeof receipt === 'string' ? receipt.split('.') : []
  const charges = texts.map((text) => {
    const [, cost = '', instant = ''] = CHARGE.exec(text) ?? []
    return { cost: Number.parseInt(cost, 36), instantUs: Number.parseInt(instant, 36) }
  })
  const sound = charges.every(({ cost, instantUs }) => Number.isSafeInteger(cost) && Number.isSafeInteger(instantUs))
  const chargedUs = /^[0-9a-z]{1,11}$/.test(at) ? Number.parseInt(at, 36) : Number.NaN
  if (form !== FORM || !sound || !Number.isSafeInteger(chargedUs) || charges.length !== limits) {
    throw new InvalidArgumentError('receipt', `${show(receipt)} is not a receipt of a decision on ${limits} limits`)
  }
  return { chargedUs, charges }
}
