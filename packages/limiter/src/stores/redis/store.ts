import { DECIDE_LUA, DECIDE_SHA1 } from '../../script/decide.generated.ts'
import { type Check, type Part, type RemoteStore, StoreFault, type StoreReport, type Ticket } from '../../store.ts'
import { Batch } from './batch.ts'
import type { Connection, ConnectionEvents } from './connection.ts'
import { faultOf, isNoScript } from './faults.ts'
import { ServerClock } from './server-clock.ts'

/** A script of the store's: its text, and how each call ends (the build for tests adds its clock). */
export interface Script {
  readonly text: string
  readonly sha1: string
  readonly extraArgs: () => readonly string[]
}

export const DECIDE: Script = { text: DECIDE_LUA, sha1: DECIDE_SHA1, extraArgs: () => [] }

/** How often a batch that surely did not run is sent in all. */
const MAX_ATTEMPTS = 3
/** Unanswered probes in a row after which the connection is given up for a new one. */
const MAX_SILENT_PROBES = 3

/** Checks of one tick leave in one call of the script, over a connection that is the store's own. */
export class RedisStore implements RemoteStore, ConnectionEvents {
  readonly kind = 'remote'
  private readonly prefix: string
  private readonly script: Script
  private readonly connection: Connection
  private readonly clock = new ServerClock()
  private readonly reports = new Set<StoreReport>()
  private queue: Ticket[] = []
  private flushing: NodeJS.Immediate | undefined
  /** `connecting` only until the first attempt has ended: until then checks wait, within their deadline. */
  private state: 'connecting' | 'ready' | 'down' | 'closed' = 'connecting'
  private down = new StoreFault('connection', 'not connected to Redis yet', true)
  private loading: Promise<unknown> | undefined
  private silentProbes = 0

  constructor(connect: (events: ConnectionEvents) => Connection, prefix: string, script: Script = DECIDE) {
    this.prefix = `${prefix}:`
    this.script = script
    this.connection = connect(this)
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

  async reset(parts: readonly Part[], deadlineMs: number): Promise<void> {
    if (parts.length === 0) return
    const keys = parts.map(({ space, value }) => this.prefix + space + value)
    await this.within(deadlineMs, () => this.connection.send(['DEL', ...keys]))
  }

  async ping(check: Check, deadlineMs: number): Promise<void> {
    try {
      await this.within(
        deadlineMs,
        () =>
          new Promise<void>((resolve, reject) => {
            this.submit({ check, deadlineMs, settled: false, answer: () => resolve(), fail: reject })
          }),
      )
      this.silentProbes = 0
    } catch (error) {
      this.countSilence(error)
      throw error
    }
  }

  watch(report: StoreReport): () => void {
    this.reports.add(report)
    return () => void this.reports.delete(report)
  }

  async close(): Promise<void> {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.down = new StoreFault('connection', 'the store was closed', true)
    this.failQueue()
    clearImmediate(this.flushing)
    await this.connection.close()
  }

  onReady(): void {
    this.prepare().then(
      () => {
        if (this.state === 'closed') return
        this.state = 'ready'
        this.silentProbes = 0
        this.flush()
      },
      (error: unknown) => this.onDown(error as Error),
    )
  }

  onDown(error: Error | undefined): void {
    if (this.state === 'closed') return
    this.state = 'down'
    // A refused login is said once, then the connection just closes: the cause stays known until the next.
    if (error !== undefined || this.down.cause === undefined) {
      const cause = error ?? new Error('the connection was closed')
      this.down = new StoreFault('connection', causeText(cause), true, { cause })
    }
    this.failQueue()
  }

  /** A new connection knows the script and the time before the first check goes out. */
  private async prepare(): Promise<void> {
    const [, time] = await Promise.all([this.load(), this.connection.send(['TIME'])])
    const [seconds, micros] = time as [string, string]
    this.clock.see(Number(seconds) * 1_000_000 + Number(micros))
  }

  /** Loads the script; whatever is sent afterwards on this connection finds it. */
  private load(): Promise<unknown> {
    this.loading ??= this.connection.send(['SCRIPT', 'LOAD', this.script.text]).finally(() => {
      this.loading = undefined
    })
    return this.loading
  }

  private flush(): void {
    this.flushing = undefined
    const tickets = this.queue
    this.queue = []
    let batch = new Batch(this.prefix)
    for (const ticket of tickets) {
      if (ticket.settled) continue
      if (batch.full) {
        this.send(batch)
        batch = new Batch(this.prefix)
      }
      batch.add(ticket)
    }
    this.send(batch)
  }

  private send(batch: Batch): void {
    if (batch.tickets.length === 0) return
    const { sha1, extraArgs } = this.script
    const input = batch.encode(this.clock.at(batch.deadlineMs))
    const args = ['EVALSHA', sha1, `${batch.keys.length}`, ...batch.keys, input, ...extraArgs()]
    this.connection.send(args).then(
      (reply) => this.receive(batch, reply),
      (error: unknown) => this.refused(batch, faultOf(error)),
    )
  }

  private receive(batch: Batch, reply: unknown): void {
    const [status, nowUs, garbage] = reply as number[]
    if (Array.isArray(reply) && Number.isSafeInteger(nowUs)) {
      this.clock.see(nowUs as number)
      if (status === 1) {
        this.resend(batch, new StoreFault('stale', 'the check reached the store after its deadline', true))
        return
      }
      if ((garbage as number) > 0) this.report('unreadable state in Redis was replaced', 'garbage', garbage as number)
      if (batch.answer(reply)) return
    }
    failAll(batch, new StoreFault('script', `the script's reply has an unknown form: ${JSON.stringify(reply)}`, false))
  }

  private refused(batch: Batch, fault: StoreFault): void {
    if (!isNoScript(fault) || this.state !== 'ready') {
      failAll(batch, fault)
      return
    }
    // Commands of one connection run in order: the script is there before the batch comes again.
    this.load().catch(() => undefined)
    this.resend(batch, fault)
  }

  /** Sends once more what surely did not run and is still waited for. */
  private resend(batch: Batch, fault: StoreFault): void {
    if (batch.attempt + 1 >= MAX_ATTEMPTS) {
      failAll(batch, fault)
      return
    }
    const again = new Batch(this.prefix, batch.attempt + 1)
    for (const ticket of batch.tickets) if (!ticket.settled) again.add(ticket)
    this.send(again)
  }

  private failQueue(): void {
    const tickets = this.queue
    this.queue = []
    for (const ticket of tickets) ticket.fail(this.down)
  }

  private async within<T>(deadlineMs: number, start: () => Promise<T>): Promise<T> {
    if (this.state !== 'ready') throw this.down
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      const fault = new StoreFault('timeout', 'no answer from Redis in time', false)
      timer = setTimeout(() => reject(fault), Math.max(1, deadlineMs - performance.now()))
    })
    try {
      return await Promise.race([start(), timeout])
    } catch (error) {
      throw error instanceof StoreFault ? error : faultOf(error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** A connection that swallows everything (its peer is gone without a word) is given up. */
  private countSilence(error: unknown): void {
    if (this.state !== 'ready' || !(error instanceof StoreFault) || error.kind !== 'timeout') return
    this.silentProbes += 1
    if (this.silentProbes < MAX_SILENT_PROBES) return
    this.silentProbes = 0
    this.connection.reconnect()
  }

  private report(message: string, kind: string, count: number): void {
    for (const report of this.reports) report(message, kind, count)
  }
}

function failAll(batch: Batch, fault: StoreFault): void {
  for (const ticket of batch.tickets) ticket.fail(fault)
}

/** An AggregateError (one for each address tried) has an empty message of its own. */
function causeText(error: Error): string {
  const first = error instanceof AggregateError ? (error.errors[0] as Error | undefined) : undefined
  return first?.message || error.message || error.name
}
