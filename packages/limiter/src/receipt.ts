import { InvalidArgumentError, show } from './errors.ts'
import type { Part } from './store.ts'

/** What begins a receipt: the form that it is written in, by where the charge stands. */
const FORMS = { store: 'r1', local: 'l1' } as const
export type ChargedWhere = keyof typeof FORMS

/** A charge of one limit. */
export interface Charge {
  readonly cost: number
  /** The instant of the charge, and the one by which it can be given back. */
  readonly chargedUs: number
  readonly instantUs: number
}

/**
 * What was charged, for {@link readReceipt}: the form, a mark of the counters, then each limit's units and instants in
 * the order of the check. It holds no key.
 */
export function writeReceipt(where: ChargedWhere, parts: readonly Part[], charges: readonly Charge[]): string {
  const texts = charges.map(({ cost, chargedUs, instantUs }) => {
    // Of slots there is nothing to give back.
    const spanUs = instantUs > chargedUs ? instantUs - chargedUs : 0
    return [cost, instantUs === 0 ? 0 : chargedUs, spanUs].map((n) => n.toString(36)).join('-')
  })
  return [FORMS[where], markOf(parts), ...texts].join('.')
}

/** Whether a decision without the store charged the part: by its share, or in this process. */
export function isInShares({ onStoreFailure }: Part, parts: readonly Part[]): boolean {
  return onStoreFailure === 'local' || parts.some(({ limit }) => limit.scope === 'instance')
}

const CHARGE = /^([0-9a-z]{1,11})-([0-9a-z]{1,11})-([0-9a-z]{1,11})$/

/** @returns undefined where it is no receipt at all */
export function chargedWhere(receipt: unknown): ChargedWhere | undefined {
  const form = typeof receipt === 'string' ? receipt.split('.', 1)[0] : undefined
  return (Object.keys(FORMS) as ChargedWhere[]).find((where) => FORMS[where] === form)
}

/** @throws InvalidArgumentError unless it is the receipt of a check of these limits and keys */
export function readReceipt(receipt: unknown, parts: readonly Part[]): Charge[] {
  const [, mark, ...texts] = typeof receipt === 'string' ? receipt.split('.') : []
  const charges = texts.map((text): Charge => {
    const [, cost, charged, span] = CHARGE.exec(text) ?? []
    const [units, chargedUs, spanUs] = [cost, charged, span].map((n) => Number.parseInt(n ?? '', 36)) as [
      number,
      number,
      number,
    ]
    return { cost: units, chargedUs, instantUs: chargedUs + spanUs }
  })
  const sound = charges.every((charge) => Object.values(charge).every(Number.isSafeInteger))
  if (chargedWhere(receipt) === undefined || !sound || charges.length !== parts.length) {
    throw new InvalidArgumentError(
      'receipt',
      `${show(receipt)} is not a receipt of a decision on ${parts.length} limits`,
    )
  }
  if (mark !== markOf(parts)) {
    throw new InvalidArgumentError('receipt', `${show(receipt)} is of a decision on other keys or limits`)
  }
  return charges
}

/** Tells the counters of one check from those of another (FNV-1a); it guards against mistakes, not against malice. */
function markOf(parts: readonly Part[]): string {
  let hash = 0x811c9dc5
  for (const { space, value } of parts) {
    const text = `${space}${value}\n`
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  return (hash >>> 0).toString(36)
}
