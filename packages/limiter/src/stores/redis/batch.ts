import type { Limit } from '../../limit.ts'
import type { Check, Ticket } from '../../store.ts'

/** Together they keep one call of the script to about a millisecond of the server's time. */
const MAX_CHECKS = 128
const MAX_PARTS = 256

/** Checks that leave together, as the script reads them (the contract stands in `script/decide.lua`). */
export class Batch {
  readonly tickets: Ticket[] = []
  readonly keys: string[] = []
  /** The earliest deadline of its callers, on `performance.now()`. */
  deadlineMs = Number.POSITIVE_INFINITY
  /** How often these checks were sent before, because they surely did not run. */
  readonly attempt: number
  private readonly prefix: string
  private readonly keyIndex = new Map<string, number>()
  private readonly limitIndex = new Map<Limit, number>()
  private limits = ''
  private checks = ''
  private parts = 0

  /** @param prefix what begins every key, with its colon */
  constructor(prefix: string, attempt = 0) {
    this.prefix = prefix
    this.attempt = attempt
  }

  /** Whether the check may join; one of many limits leaves by itself. */
  hasRoomFor({ parts }: Check): boolean {
    if (this.tickets.length === 0) return true
    return this.tickets.length < MAX_CHECKS && this.parts + parts.length <= MAX_PARTS
  }

  add(ticket: Ticket): void {
    const { parts, peek } = ticket.check
    const unit = parts.every(({ cost }) => cost === 1)
    this.tickets.push(ticket)
    this.parts += parts.length
    if (ticket.deadlineMs < this.deadlineMs) this.deadlineMs = ticket.deadlineMs
    this.checks += `,${parts.length * 4 + (unit ? 0 : 2) + (peek ? 1 : 0)}`
    for (const { limit, space, value, cost } of parts) {
      this.checks += `,${this.indexOfLimit(limit) * 4096 + this.indexOfKey(space + value)}`
      if (!unit) this.checks += `,${cost}`
    }
  }

  /** The script's first argument. @param staleUs the store's instant after which it must not run */
  encode(staleUs: number): string {
    return `[${staleUs},${this.limitIndex.size}${this.limits}${this.checks}]`
  }

  /**
   * Hands the script's reply to its callers.
   * @returns false when the reply is not of the form that this batch must have
   */
  answer(reply: readonly number[]): boolean {
    const nowUs = reply[1] as number
    if (reply.length !== this.replyLength()) return false
    let at = 3
    for (const ticket of this.tickets) {
      ticket.answer(reply[at] === 1, nowUs, reply, at + 1)
      at += 1
      for (const { limit } of ticket.check.parts) at += limit.viewSize
    }
    return true
  }

  private replyLength(): number {
    let length = 3 + this.tickets.length
    for (const ticket of this.tickets) for (const { limit } of ticket.check.parts) length += limit.viewSize
    return length
  }

  private indexOfKey(key: string): number {
    let index = this.keyIndex.get(key)
    if (index === undefined) {
      index = this.keys.push(this.prefix + key)
      this.keyIndex.set(key, index)
    }
    return index
  }

  private indexOfLimit(limit: Limit): number {
    let index = this.limitIndex.get(limit)
    if (index === undefined) {
      index = this.limitIndex.size + 1
      this.limitIndex.set(limit, index)
      this.limits += `,${limit.wire.join(',')}`
    }
    return index
  }
}
