import type { Check, StoreFault, Ticket, Verdict } from '../../../store.ts'
import type { RedisStore } from '../store.ts'
import type { Address } from './client.ts'

/** A node: the store of one server, and where it is. */
export interface ClusterNode {
  readonly address: Address
  readonly store: RedisStore
}

/** A check on its way through the cluster: who failed it, for a reason that another server may not have, is not the last. */
export class Routed implements Ticket {
  readonly check: Check
  readonly deadlineMs: number
  readonly tag: number
  /** The node that it was handed to, and how often it was handed to one. */
  node: ClusterNode | undefined
  attempts = 0
  /** For a slot that is on its way to the node. */
  asking = false
  /** In a batch of its own: keys of others may be on the other side of a move. */
  alone = false
  private readonly ticket: Ticket
  private readonly failed: (routed: Routed, fault: StoreFault) => void

  constructor(ticket: Ticket, tag: number, failed: (routed: Routed, fault: StoreFault) => void) {
    this.ticket = ticket
    this.check = ticket.check
    this.deadlineMs = ticket.deadlineMs
    this.tag = tag
    this.failed = failed
  }

  get settled(): boolean {
    return this.ticket.settled
  }

  answer(verdict: Verdict): void {
    this.ticket.answer(verdict)
  }

  fail(fault: StoreFault): void {
    this.failed(this, fault)
  }

  /** No other way is left. */
  giveUp(fault: StoreFault): void {
    this.ticket.fail(fault)
  }
}
