import type { RoundTripReport, StoreReport } from '../../../store.ts'
import { Announcements, type Subscribe, type Subscription } from '../announcements.ts'
import type { Route } from '../batch.ts'
import type { Link } from '../connection.ts'
import type { Script } from '../script.ts'
import { RedisStore } from '../store.ts'
import { type Address, type ClusterClient, nameOf, type Seed } from './client.ts'
import { type Owners, readOwners } from './owners.ts'
import type { ClusterNode, Routed } from './routed.ts'
import { TAGS } from './tags.ts'

/** How long until the servers are asked again who keeps what, while one of them is away, in ms. */
const REFRESH_MS = 100
const CLUSTER_SLOTS = ['CLUSTER', 'SLOTS']

export interface NodesEvents {
  /** Who keeps what is known, or may have changed. */
  onOwners(): void
  /** A node is away. */
  onDown(): void
}

/** The servers of a cluster that keep tags, each with a connection of our own, and which of them keeps which. */
export class Nodes {
  /** By tag; undefined: not known yet. */
  owners: Owners | undefined
  /** What is published on any of them. */
  readonly announcements: Announcements
  private readonly client: ClusterClient
  private readonly script: Script
  private readonly events: NodesEvents
  private readonly routes: readonly Route[]
  private readonly askingRoutes: readonly Route[]
  private readonly nodes = new Map<string, ClusterNode>()
  private readonly reports = new Set<readonly [StoreReport, RoundTripReport | undefined]>()
  private timer: NodeJS.Timeout | undefined
  private asking = false
  private closed = false

  constructor(client: ClusterClient, prefix: string, script: Script, events: NodesEvents, subscribe?: Subscribe) {
    this.client = client
    this.announcements = new Announcements(`${prefix}:`, subscribe ?? this.listener(), {
      say: async (text) => this.heard()?.store.ask(['PUBLISH', this.announcements.channel, text]),
      warn: (message) => {
        for (const [report] of this.reports) report(message, 'subscription', 1)
      },
    })
    this.script = script
    this.events = events
    this.routes = TAGS.map(({ text }) => ({ prefix: `${prefix}:{${text}}:` }))
    this.askingRoutes = this.routes.map((route) => ({ ...route, asking: true }))
    this.openSeeds()
  }

  /** Whether some server has still to be heard of for the first time. */
  get connecting(): boolean {
    return this.some(({ store }) => store.connecting || store.connected)
  }

  /** Any of the nodes. */
  get any(): ClusterNode | undefined {
    return this.nodes.values().next().value
  }

  ownerOf(tag: number): ClusterNode | undefined {
    const address = this.owners?.[tag]
    return address && this.at(address)
  }

  /** The name of who keeps a tag; '' while nobody does. */
  nameOfOwner(tag: number): string {
    const address = this.owners?.[tag]
    return address === undefined ? '' : nameOf(address)
  }

  /** The node at an address, as servers call it. */
  at(address: Address): ClusterNode {
    return this.nodes.get(nameOf(address)) ?? this.open(address, this.client.reach(address))
  }

  /** A tag has moved: that is known before all servers were asked. */
  moved(tag: number, to: Address): void {
    this.owners = this.owners?.map((owner, each) => (each === tag ? to : owner))
    this.refresh()
  }

  /** Asks who keeps what now, soon. */
  refresh(): void {
    if (!this.closed) this.timer ??= setTimeout(() => void this.askAgain(), REFRESH_MS * (0.5 + Math.random())).unref()
  }

  watch(report: StoreReport, roundTrip?: RoundTripReport): () => void {
    const watcher = [report, roundTrip] as const
    this.reports.add(watcher)
    return () => void this.reports.delete(watcher)
  }

  async close(): Promise<void> {
    this.closed = true
    clearTimeout(this.timer)
    await Promise.all([this.announcements.close(), ...[...this.nodes.values()].map(({ store }) => store.close())])
  }

  private some(test: (node: ClusterNode) => boolean): boolean {
    for (const node of this.nodes.values()) if (test(node)) return true
    return false
  }

  private openSeeds(): void {
    for (const seed of this.client.seeds) if (!this.nodes.has(nameOf(seed))) this.open(seed, seed)
  }

  private open(address: Address, seed: Seed): ClusterNode {
    const store = new RedisStore((events, timeoutMs) => this.client.open(seed, events, timeoutMs), '', this.script, {
      member: {
        channel: this.announcements.channel,
        routeOf: (ticket) => this.routeOf(ticket as Routed),
        prepare: (send) => this.learn(send, address),
        onDown: () => this.lost(),
      },
    })
    const node = { address, store }
    this.nodes.set(nameOf(address), node)
    store.watch(
      (message, kind, count) => {
        for (const [report] of this.reports) report(message, kind, count)
      },
      (durationMs, checks) => {
        for (const [, roundTrip] of this.reports) roundTrip?.(durationMs, checks)
      },
    )
    return node
  }

  private routeOf({ tag, asking, alone }: Routed): Route {
    const route = (asking ? this.askingRoutes : this.routes)[tag] as Route
    return alone ? { ...route } : route
  }

  private async learn(send: Link['send'], asked: Address): Promise<void> {
    this.owners = readOwners(await send(CLUSTER_SLOTS), asked)
    this.closeIdle()
    this.announcements.onReady()
    this.events.onOwners()
    // As long as somebody is away, somebody else may take over.
    const complete = this.owners.every((owner) => owner !== undefined && this.at(owner).store.connected)
    if (!complete) this.refresh()
  }

  private async askAgain(): Promise<void> {
    this.timer = undefined
    if (this.asking) return
    const node = this.heard()
    if (!node?.store.connected) {
      // Every new link learns it by itself; all that was known may have moved.
      this.openSeeds()
      return
    }
    this.asking = true
    try {
      await this.learn((args) => node.store.ask(args), node.address)
    } catch {
      this.refresh()
    } finally {
      this.asking = false
    }
  }

  /** Servers that keep nothing are left; they would only be in the way of a failover. */
  private closeIdle(): void {
    const kept = new Set(this.owners?.map((owner) => owner && nameOf(owner)))
    if (!this.some(({ address, store }) => store.connected && kept.has(nameOf(address)))) return
    for (const [name, { store }] of this.nodes) {
      if (kept.has(name)) continue
      this.nodes.delete(name)
      store.close().catch(() => undefined)
    }
  }

  /** Any of the nodes, one that answers if there is one. */
  private heard(): ClusterNode | undefined {
    const heard = [...this.nodes.values()].filter(({ store }) => store.connected)
    return heard[Math.floor(Math.random() * heard.length)] ?? this.any
  }

  /** Listens on any of the nodes, where the client can. */
  private listener(): Subscribe | undefined {
    if (this.client.listen === undefined) return undefined
    return (...to) =>
      this.client.listen?.(this.client.reach((this.heard() as ClusterNode).address), ...to) as Subscription
  }

  private lost(): void {
    this.refresh()
    this.events.onDown()
  }
}
