import {
  type ChangeListener,
  type Check,
  type RemoteStore,
  type RoundTripReport,
  StoreFault,
  type StoreReport,
  type Ticket,
  type Verdict,
} from '../../store.ts'
import { Announcements, channelOf, type Subscribe } from './announcements.ts'
import { Batch, type Route } from './batch.ts'
import { Connection, type ConnectionEvents, type Link, type OpenLink } from './connection.ts'
import { downFault, faultOf, isNoScript } from './faults.ts'
import { refusalOf, required } from './no-scripts.ts'
import { DECIDE, type Script } from './script.ts'
import { ServerClock } from './server-clock.ts'
import { refuseOldServer } from './server-version.ts'

/** What a store is part of, and how it hears of changes. */
export interface StoreTies {
  /** Where it is a node of a cluster. */
  readonly member?: Member | undefined
  readonly subscribe?: Subscribe | undefined
}

/** How often a batch that surely did not run is sent in all. */
const MAX_ATTEMPTS = 3
const ALMOST_DUE_MS = 2
/** How long after its deadline a batch may stay unanswered before the connection is given up, in ms. */
const SILENCE_MS = 1000

/** What a node of a cluster does beside a single server's store. */
export interface Member {
  /** Where what ends refusals is told of. */
  readonly channel: string
  routeOf(ticket: Ticket): Route
  /** On a new link that can run the script, before the first check goes out on it. */
  prepare(send: Link['send']): Promise<void>
  onDown(): void
}

/** Checks of one tick leave in one call of the script, over a connection that is the store's own. */
export class RedisStore implements RemoteStore, ConnectionEvents {
  readonly kind = 'remote'
  private readonly route: Route
  private readonly member: Member | undefined
  private readonly script: Script
  private readonly connection: Connection
  private readonly clock = new ServerClock()
  /** Of a node of a cluster its cluster has them. */
  private readonly announcements: Announcements | undefined
  private readonly channel: string
  private readonly reports = new Set<StoreReport>()
  private readonly roundTrips = new Set<RoundTripReport>()
  private queue: Ticket[] = []
  private flushing: NodeJS.Immediate | undefined
  /** `connecting` only until the first attempt has ended: until then checks wait, within their deadline. */
  private state: 'connecting' | 'ready' | 'down' | 'closed' = 'connecting'
  private down = new StoreFault('connection', 'not connected to Redis yet', true)
  /** What batches that were on their way when the link ended failed of: they may have run. */
  private cut = this.down
  /** Settled when the first attempt to connect has ended. */
  private readonly begun: Promise<void>
  private begin: () => void = () => undefined
  private loading: Promise<unknown> | undefined
  /** The deadline of the first batch that was sent since Redis was last heard of. */
  private unansweredMs = Number.POSITIVE_INFINITY

  constructor(open: OpenLink, prefix: string, script: Script = DECIDE, { member, subscribe }: StoreTies = {}) {
    this.route = { prefix: `${prefix}:` }
    const warn = (message: string) => this.report(message, 'subscription', 1)
    const say = (text: string) => this.ask(['PUBLISH', this.channel, text])
    if (member === undefined) this.announcements = new Announcements(this.route.prefix, subscribe, { say, warn })
    this.channel = member?.channel ?? channelOf(this.route.prefix)
    this.script = script
    this.member = member
    this.begun = new Promise((resolve) => {
      this.begin = resolve
    })
    this.connection = new Connection(open, this)
  }

  get connected(): boolean {
    return this.state === 'ready'
  }

  /** Whether the first attempt to connect is under way. */
  get connecting(): boolean {
    return this.state === 'connecting'
  }

  /** Why there is no connection. */
  get fault(): StoreFault {
    return this.down
  }

  /** A command beside the checks. */
  ask(args: readonly string[]): Promise<unknown> {
    return this.connection.send(args)
  }

  submit(ticket: Ticket): void {
    if (this.state === 'down' || this.state === 'closed') {
      ticket.fail(this.down)
      return
    }
    this.queue.push(ticket)
    // At the end of this turn of the event loop: all that is readable now has been read by then.
    if (this.state === 'ready') this.flushing ??= setImmediate(() => this.flush())
  }

  async run(check: Check, deadlineMs: number): Promise<Verdict> {
    let settled = false
    const judged = () =>
      new Promise<Verdict>((resolve, reject) => {
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
    try {
      return await this.within(deadlineMs, judged)
    } catch (error) {
      this.doubt(error as StoreFault)
      throw error
    } finally {
      settled = true
    }
  }

  watch(report: StoreReport, roundTrip?: RoundTripReport): () => void {
    this.reports.add(report)
    if (roundTrip !== undefined) this.roundTrips.add(roundTrip)
    return () => {
      this.reports.delete(report)
      if (roundTrip !== undefined) this.roundTrips.delete(roundTrip)
    }
  }

  watchChanges(listener: ChangeListener): () => void {
    return this.announcements?.watch(listener) ?? (() => undefined)
  }

  async close(): Promise<void> {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.down = new StoreFault('connection', 'the store was closed', true)
    this.cut = new StoreFault('connection', 'the store was closed', false)
    this.begin()
    this.failQueue()
    clearImmediate(this.flushing)
    await Promise.all([this.connection.close(), this.announcements?.close()])
  }

  /** A new link knows the script, and its server the time, before the first check goes out. */
  async prepare(send: Link['send']): Promise<void> {
    const sentMs = performance.now()
    // A server that wants a login first cuts whoever sends it as much as the script.
    const time = await required('TIME', send(['TIME']))
    const [seconds, micros] = time as readonly unknown[]
    const nowUs = Number(seconds) * 1_000_000 + Number(micros)
    if (!Number.isSafeInteger(nowUs)) throw new Error(`TIME was answered by ${brief(time)}`)
    this.clock.see(nowUs, sentMs)
    await refuseOldServer(send)
    await required('SCRIPT LOAD', send(['SCRIPT', 'LOAD', this.script.text]))
    await this.member?.prepare(send)
  }

  onReady(): void {
    this.state = 'ready'
    this.begin()
    this.loading = undefined
    this.unansweredMs = Number.POSITIVE_INFINITY
    this.announcements?.onReady()
    this.flush()
  }

  onDown(error: Error | undefined): void {
    if (this.state === 'closed') return
    this.state = 'down'
    this.down = downFault(error, true)
    this.cut = downFault(error, false)
    this.begin()
    this.announcements?.onDown()
    this.failQueue()
    this.member?.onDown()
  }

  /** Loads the script; whatever is sent afterwards on this link finds it. */
  private load(): void {
    this.loading ??= this.connection
      .send(['SCRIPT', 'LOAD', this.script.text])
      .catch(() => undefined)
      .finally(() => {
        this.loading = undefined
      })
  }

  private flush(): void {
    this.flushing = undefined
    if (this.silent()) this.connection.renew(new StoreFault('connection', 'Redis no longer answers', true))
    const tickets = this.queue
    this.queue = []
    if (this.member === undefined) this.sendAll(tickets, () => this.route)
    else this.sendTogether(tickets, this.member)
  }

  /** All slots of a node leave in one write. */
  private sendTogether(tickets: readonly Ticket[], member: Member): void {
    this.connection.together(() => this.sendAll(tickets, (ticket) => member.routeOf(ticket)))
  }

  private sendAll(tickets: readonly Ticket[], routeOf: (ticket: Ticket) => Route): void {
    const batches = new Map<Route, Batch>()
    for (const ticket of tickets) {
      if (ticket.settled) continue
      const route = routeOf(ticket)
      let batch = batches.get(route)
      if (batch === undefined || !batch.hasRoomFor(ticket.check)) {
        if (batch !== undefined) this.send(batch)
        batch = new Batch(route)
        batches.set(route, batch)
      }
      batch.add(ticket)
    }
    for (const batch of batches.values()) this.send(batch)
  }

  private send(batch: Batch): void {
    if (batch.tickets.length === 0) return
    if (this.state !== 'ready') {
      failAll(batch, this.down)
      return
    }
    if (batch.deadlineMs < this.unansweredMs) this.unansweredMs = batch.deadlineMs
    const { text, sha1, extraArgs } = this.script
    const input = batch.encode(this.clock.at(batch.deadlineMs), this.clock.at(performance.now()))
    // Whoever met no script brings it along: another flush cannot come in between.
    const script = batch.attempt > 0 && this.loading !== undefined ? ['EVAL', text] : ['EVALSHA', sha1]
    const args = [...script, `${batch.keys.length}`, ...batch.keys, input, ...extraArgs(), this.channel]
    const sentMs = performance.now()
    if (batch.route.asking === true) this.connection.send(['ASKING']).catch(() => undefined)
    this.connection.send(args).then(
      (reply) => this.receive(batch, reply, sentMs),
      (error: unknown) => this.refused(batch, this.state === 'ready' ? refusalOf('EVALSHA', error) : this.cut),
    )
  }

  private receive(batch: Batch, reply: unknown, sentMs: number): void {
    this.unansweredMs = Number.POSITIVE_INFINITY
    const numbers = Array.isArray(reply) ? (reply as number[]) : []
    const [status, nowUs, garbage = 0] = numbers
    if (nowUs !== undefined && Number.isSafeInteger(nowUs)) {
      this.clock.see(nowUs, sentMs)
      if (status === 1) {
        this.resend(batch, new StoreFault('stale', 'the check reached the store after its deadline', true))
        return
      }
      if (status === 2) {
        // Its clock is known better now.
        this.resend(batch, new StoreFault('stale', 'the check met a calendar window that was not open', true))
        return
      }
      if (batch.answer(numbers, this.script.onServerClock ? sentMs : undefined)) {
        const tookMs = performance.now() - sentMs
        for (const roundTrip of this.roundTrips) roundTrip(tookMs, batch.tickets.length)
        if (garbage > 0) this.report('unreadable state in Redis was replaced', 'garbage', garbage)
        return
      }
    }
    failAll(batch, new StoreFault('script', `the script's reply has an unknown form: ${brief(reply)}`, false))
  }

  private refused(batch: Batch, fault: StoreFault): void {
    this.unansweredMs = Number.POSITIVE_INFINITY
    if (!isNoScript(fault)) {
      failAll(batch, fault)
      return
    }
    // Commands of one connection run in order: the script is there before the batch comes again.
    this.load()
    this.resend(batch, fault)
  }

  /** Sends once more what surely did not run and is still waited for. */
  private resend(batch: Batch, fault: StoreFault): void {
    if (batch.attempt + 1 >= MAX_ATTEMPTS) {
      failAll(batch, fault)
      return
    }
    const again = new Batch(batch.route, batch.attempt + 1)
    // One that is almost due is left to its deadline: it would only make the rest stale again.
    const leastMs = performance.now() + ALMOST_DUE_MS
    for (const ticket of batch.tickets) if (!ticket.settled && ticket.deadlineMs > leastMs) again.add(ticket)
    this.send(again)
  }

  private failQueue(): void {
    const tickets = this.queue
    this.queue = []
    for (const ticket of tickets) ticket.fail(this.down)
  }

  private async within<T>(deadlineMs: number, start: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    let late = false
    const timeout = new Promise<never>((_, reject) => {
      const expire = () => {
        late = true
        reject(new StoreFault('timeout', 'no answer from Redis in time', false))
      }
      timer = setTimeout(expire, Math.max(1, deadlineMs - performance.now())).unref()
    })
    const connected = this.begun.then(() => {
      if (late || this.state !== 'ready') throw this.down
      return start()
    })
    try {
      return await Promise.race([connected, timeout])
    } catch (error) {
      throw faultOf(error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Another server may have become the one to write to, or the login another: a new link finds out. */
  private doubt(fault: StoreFault): void {
    if (this.state !== 'ready') return
    if (fault.kind === 'readonly' || fault.kind === 'auth') this.connection.renew(fault)
  }

  /** A link that swallows everything: its peer is gone without a word. */
  private silent(): boolean {
    return performance.now() - this.unansweredMs > SILENCE_MS
  }

  private report(message: string, kind: string, count: number): void {
    for (const report of this.reports) report(message, kind, count)
  }
}

function failAll(batch: Batch, fault: StoreFault): void {
  for (const ticket of batch.tickets) ticket.fail(fault)
}

function brief(reply: unknown): string {
  return `${JSON.stringify(reply)}`.slice(0, 100)
}
