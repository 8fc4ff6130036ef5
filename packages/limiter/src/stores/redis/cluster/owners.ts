import type { Address } from './client.ts'
import { TAGS } from './tags.ts'

/** Who keeps each tag; undefined: nobody says so. */
export type Owners = readonly (Address | undefined)[]

/**
 * Reads what `CLUSTER SLOTS` answers.
 * @param asked who answered: a node that does not know its own name calls itself by an empty one
 * @throws Error where it is not of that form
 */
export function readOwners(reply: unknown, asked: Address): Owners {
  if (!Array.isArray(reply))
    throw new Error(`CLUSTER SLOTS was answered by ${`${JSON.stringify(reply)}`.slice(0, 100)}`)
  const ranges = reply.map((range: unknown) => {
    const [first, last, master] = Array.isArray(range) ? (range as readonly unknown[]) : []
    const [host, port] = Array.isArray(master) ? (master as readonly unknown[]) : []
    const named = host === null || host === '' || host === '?' ? asked.host : `${host}`
    return { first: Number(first), last: Number(last), master: { host: named, port: Number(port) } }
  })
  return TAGS.map(({ slot }) => ranges.find(({ first, last }) => first <= slot && slot <= last)?.master)
}

/** Where an answer sends whoever asked. */
export interface Redirection {
  /** For this command only: the slot is on its way there. */
  readonly asking: boolean
  readonly to: Address
}

const REDIRECTION = /(?:^|-)(MOVED|ASK) \d+ (\S*):(\d+)/

/** @param asked who answered; an empty host means its own */
export function readRedirection(message: string, asked: Address): Redirection | undefined {
  const [, kind, host, port] = REDIRECTION.exec(message) ?? []
  if (kind === undefined) return undefined
  return { asking: kind === 'ASK', to: { host: host || asked.host, port: Number(port) } }
}
