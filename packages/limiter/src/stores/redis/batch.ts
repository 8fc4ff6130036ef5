import type { Limit } from '../../limit.ts'
import { SINCE_SPACE, sinceValue } from '../../script/judging.ts'
import { OPERATIONS } from '../../script/operations.ts'
import type { Check, Follower, Part, Ticket, Verdict } from '../../store.ts'

/** Together they keep one call of the script to about a millisecond of the server's time. */
const MAX_CHECKS = 128
const MAX_WEIGHT = 256
/** Below what the script can tell apart, with room for one check of many limits. */
const MAX_KEYS = 1000

/** What checks must have in common to leave together. */
export interface Route {
  /** What begins every key, with its colon. */
  readonly prefix: string
  /** For a slot that is on its way to the server, which answers for it only when asked to. */
  readonly asking?: boolean
}

/** Checks that leave together, as the script reads them (the contract stands in `script/decide.lua`). */
export class Batch {
  readonly tickets: Ticket[] = []
  readonly keys: string[] = []
  /** The earliest deadline of its callers, on `performance.now()`. */
  deadlineMs = Number.POSITIVE_INFINITY
  /** How often these checks were sent before, because they surely did not run. */
  readonly attempt: number
  readonly route: Route
  private readonly keyIndex = new Map<string, number>()
  /** By limit; by its space too, where its counters begin exhausted since an instant of their own. */
  private readonly limitIndex = new Map<Limit | string, number>()
  private readonly limits: { readonly limit: Limit; readonly since: number }[] = []
  private checks = ''
  private weight = 0

  constructor(route: Route, attempt = 0) {
    this.route = route
    this.attempt = attempt
  }

  /** Whether the check may join; one of many limits leaves by itself. */
  hasRoomFor(check: Check): boolean {
    if (this.tickets.length === 0) return true
    const weight = weightOf(check)
    return (
      this.tickets.length < MAX_CHECKS &&
      this.weight + weight <= MAX_WEIGHT &&
      this.keys.length + 2 * weight <= MAX_KEYS
    )
  }

  add(ticket: Ticket): void {
    const { check } = ticket
    this.tickets.push(ticket)
    this.weight += weightOf(check)
    if (ticket.deadlineMs < this.deadlineMs) this.deadlineMs = ticket.deadlineMs
    this.write(check)
    if (check.followers === undefined) return
    for (const follower of check.followers) this.write({ parts: follower.parts, peek: check.peek }, follower)
  }

  /**
   * The script's first argument.
   * @param staleUs the store's instant after which it must not run
   * @param nowUs about the store's instant now
   */
  encode(staleUs: number, nowUs: number): string {
    let limits = ''
    for (const { limit, since } of this.limits) {
      const [code, ...params] = limit.wireAt === undefined ? limit.wire : limit.wireAt(nowUs)
      limits += `,${code},${since},${params.join(',')}`
    }
    return `[${staleUs},${this.limits.length}${limits}${this.checks}]`
  }

  /**
   * Hands the script's reply to its callers.
   * @param writtenMs when the batch was sent; undefined: on a clock of a test
   * @returns false when the reply is not of the form that this batch must have
   */
  answer(reply: readonly number[], writtenMs: number | undefined): boolean {
    const verdicts: Verdict[] = []
    let at = 3
    for (const { check } of this.tickets) {
      const verdict = readVerdict(check, reply, at, writtenMs)
      at = verdict.end
      if (check.followers !== undefined) {
        const followers: Verdict[] = []
        for (const { parts } of check.followers) {
          const follower = readVerdict({ parts, peek: check.peek }, reply, at, writtenMs)
          at = follower.end
          followers.push(follower)
        }
        verdict.followers = followers
      }
      verdicts.push(verdict)
    }
    if (reply.length !== at) return false
    for (let i = 0; i < verdicts.length; i++) (this.tickets[i] as Ticket).answer(verdicts[i] as Verdict)
    return true
  }

  private write({ parts, peek, operation }: Check, follower?: Follower): void {
    let costs = false
    let ids = false
    for (const { cost, id } of parts) {
      if (cost !== 1) costs = true
      if (id !== undefined) ids = true
    }
    const flags = (peek ? 1 : 0) + (costs ? 2 : 0) + (ids ? 4 : 0) + (follower ? 8 : 0) + (operation ? 16 : 0)
    this.checks += `,${parts.length * 32 + flags}`
    if (operation !== undefined) this.checks += `,${[OPERATIONS[operation.name].code, ...operation.args].join(',')}`
    if (follower !== undefined) {
      const { kind, places } = follower
      this.checks += `,${[kind === 'penalty' ? 2 : 1, places.length, ...places.map((place) => place + 1)].join(',')}`
    }
    for (const part of parts) {
      this.checks += `,${this.indexOfLimit(part) * 4096 + this.indexOfKey(part.space + part.value)}`
      if (costs) this.checks += `,${part.cost}`
      if (ids) this.checks += `,${part.id ?? 0}`
    }
  }

  private indexOfKey(key: string): number {
    let index = this.keyIndex.get(key)
    if (index === undefined) {
      index = this.keys.push(this.route.prefix + key)
      this.keyIndex.set(key, index)
    }
    return index
  }

  private indexOfLimit({ limit, space }: Part): number {
    const by = limit.startsEmpty === true ? `${space}${limit.wire}` : limit
    let index = this.limitIndex.get(by)
    if (index === undefined) {
      const since = limit.startsEmpty === true ? this.indexOfKey(SINCE_SPACE + sinceValue(space)) : 0
      index = this.limits.push({ limit, since })
      this.limitIndex.set(by, index)
    }
    return index
  }
}

function weightOf({ parts, followers }: Check): number {
  let weight = 0
  for (const { limit } of parts) weight += limit.weight ?? 1
  if (followers !== undefined)
    for (const { parts } of followers) for (const { limit } of parts) weight += limit.weight ?? 1
  return weight
}

interface Read extends Verdict {
  followers?: readonly Verdict[]
  /** Where the reply goes on. */
  readonly end: number
}

function readVerdict(
  { parts, operation }: Check,
  reply: readonly number[],
  from: number,
  writtenMs: number | undefined,
): Read {
  const nowUs = reply[1] as number
  const code = reply[from]
  let at = from + 1
  let result = 0
  let blockedPart = -1
  let blockedUs = 0
  let receiptUs = 0
  if (operation !== undefined) result = reply[at++] as number
  if (code === 2) {
    blockedPart = (reply[at] as number) - 1
    blockedUs = reply[at + 1] as number
    at += 2
  } else if (code === 4) receiptUs = reply[at++] as number
  let end = at
  if (operation !== undefined && OPERATIONS[operation.name].onKeys) end += parts.length
  else for (const { limit } of parts) end += limit.viewSize
  const firm = code !== 3
  return {
    allowed: code === 1 || code === 4,
    nowUs,
    view: reply,
    at,
    result,
    blockedPart,
    blockedUs,
    receiptUs,
    firm,
    end,
    ...(writtenMs !== undefined && { writtenMs }),
  }
}
