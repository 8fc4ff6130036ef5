import {
  type ChangeListener,
  type Check,
  type Part,
  type RemoteStore,
  type RoundTripReport,
  StoreFault,
  type StoreReport,
  type Ticket,
  type Verdict,
} from '../../../store.ts'
import type { Subscribe } from '../announcements.ts'
import { faultOf } from '../faults.ts'
import type { Script } from '../script.ts'
import type { ClusterClient } from './client.ts'
import { Nodes } from './nodes.ts'
import { readRedirection } from './owners.ts'
import { type ClusterNode, Routed } from './routed.ts'
import { TAG_COUNT, tagOf } from './tags.ts'

/** How often a check is handed to a node in all. */
const MAX_ATTEMPTS = 16
/** How long until what a cluster in change refused is sent again, in ms. */
const PAUSE_MS = 5

/** Counters in a Redis Cluster: each check goes, with others of its slot, to the node that keeps its tag. */
export class ClusterStore implements RemoteStore {
  readonly kind = 'remote'
  private readonly nodes: Nodes
  /** Until it is known who keeps what. */
  private waiting: Routed[] = []
  /** What is sent again in a moment. */
  private paused: Routed[] = []
  private pause: NodeJS.Timeout | undefined
  private closed = false
  private readonly failed = (routed: Routed, fault: StoreFault) => this.redirect(routed, fault)

  /** @param subscribe how changes are heard; default: on a connection to one of the nodes */
  constructor(client: ClusterClient, prefix: string, script: Script, subscribe?: Subscribe) {
    const events = { onOwners: () => this.sendWaiting(), onDown: () => this.failWaiting() }
    this.nodes = new Nodes(client, prefix, script, events, subscribe)
  }

  submit(ticket: Ticket): void {
    this.send(new Routed(ticket, tagOfCheck(ticket.check), this.failed))
  }

  async run(check: Check, deadlineMs: number): Promise<Verdict> {
    let settled = false
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<Verdict>((resolve, reject) => {
        const late = () => reject(new StoreFault('timeout', 'no answer from Redis in time', false))
        timer = setTimeout(late, Math.max(1, deadlineMs - performance.now())).unref()
        this.submit({
          check,
          deadlineMs,
          get settled() {
            return settled
          },
          answer: resolve,
          fail: reject,
        })
      })
    } catch (error) {
      throw faultOf(error)
    } finally {
      settled = true
      clearTimeout(timer)
    }
  }

  groupOf(part: Part): number {
    return tagOf(part)
  }

  serverOf(check: Check): string {
    return this.nodes.nameOfOwner(tagOfCheck(check))
  }

  probeOf(server: string, probe: Check): Check | undefined {
    for (const [tag, value] of PROBES.entries()) {
      if (this.nodes.nameOfOwner(tag) !== server) continue
      return { ...probe, parts: probe.parts.map((part) => ({ ...part, value })) }
    }
    return undefined
  }

  watch(report: StoreReport, roundTrip?: RoundTripReport): () => void {
    return this.nodes.watch(report, roundTrip)
  }

  watchChanges(listener: ChangeListener): () => void {
    return this.nodes.announcements.watch(listener)
  }

  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    clearTimeout(this.pause)
    await this.nodes.close()
    const left = [...this.waiting.splice(0), ...this.paused.splice(0)]
    for (const routed of left) routed.giveUp(closedFault())
  }

  private send(routed: Routed): void {
    if (this.closed) {
      routed.giveUp(closedFault())
    } else if (this.nodes.owners !== undefined) {
      const owner = this.nodes.ownerOf(routed.tag)
      if (owner === undefined) routed.giveUp(new StoreFault('cluster', 'no node serves a slot of the check', true))
      else handTo(owner, routed)
      if (owner === undefined) this.nodes.refresh()
    } else if (this.nodes.connecting) {
      this.waiting.push(routed)
    } else {
      routed.giveUp(this.downFault())
    }
  }

  /** Goes on elsewhere with what surely did not run, where there may be an elsewhere. */
  private redirect(routed: Routed, fault: StoreFault): void {
    const node = routed.node as ClusterNode
    const over = routed.settled || routed.attempts >= MAX_ATTEMPTS || performance.now() >= routed.deadlineMs
    if (!fault.notRun || over || this.closed) {
      routed.giveUp(fault)
      return
    }
    const redirection = readRedirection(fault.message, node.address)
    if (redirection !== undefined) {
      if (redirection.asking) routed.asking = true
      else this.nodes.moved(routed.tag, redirection.to)
      handTo(this.nodes.at(redirection.to), routed)
    } else if (fault.kind === 'cluster') {
      this.nodes.refresh()
      this.later(routed)
    } else if (this.nodes.ownerOf(routed.tag) !== node) {
      // Somebody else took over while it was on its way.
      this.send(routed)
    } else {
      if (!node.store.connected || fault.kind === 'readonly') this.nodes.refresh()
      routed.giveUp(fault)
    }
  }

  /** What a move or an election holds up is there in a moment, mostly within the deadline. */
  private later(routed: Routed): void {
    routed.asking = false
    routed.alone = true
    this.paused.push(routed)
    this.pause ??= setTimeout(() => {
      this.pause = undefined
      for (const each of this.paused.splice(0)) if (!each.settled) this.send(each)
    }, PAUSE_MS).unref()
  }

  private sendWaiting(): void {
    for (const routed of this.waiting.splice(0)) if (!routed.settled) this.send(routed)
  }

  private failWaiting(): void {
    if (this.nodes.owners !== undefined || this.nodes.connecting) return
    for (const routed of this.waiting.splice(0)) routed.giveUp(this.downFault())
  }

  private downFault(): StoreFault {
    return this.nodes.any?.store.fault ?? new StoreFault('connection', 'the cluster client names no node', true)
  }
}

/** Of a check whose counters share a slot. */
function tagOfCheck({ parts, followers }: Check): number {
  const part = parts[0] ?? followers?.[0]?.parts[0]
  return part === undefined ? 0 : tagOf(part)
}

function handTo(node: ClusterNode, routed: Routed): void {
  routed.node = node
  routed.attempts += 1
  node.store.submit(routed)
}

function closedFault(): StoreFault {
  return new StoreFault('connection', 'the store was closed', true)
}

/** By tag: the value of a probe that has it. */
const PROBES: readonly string[] = probes()

function probes(): string[] {
  const values: string[] = []
  let found = 0
  for (let number = 0; found < TAG_COUNT; number++) {
    const value = `probe-${number}`
    const tag = tagOf({ space: '~:', value })
    if (values[tag] !== undefined) continue
    values[tag] = value
    found += 1
  }
  return values
}
