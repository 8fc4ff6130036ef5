import type { Decision } from './decision.ts'
import { resultOf } from './derive.ts'
import { LONGEST_TIMER_MS } from './duration.ts'
import { HeadgateError } from './errors.ts'
import { keyOf } from './part.ts'
import { newId } from './split.ts'
import type { Part } from './store.ts'
import { type CheckOptions, type Judged, op, spanOf, type Ways } from './ways.ts'

export interface AcquireOptions extends CheckOptions {
  /** The longest wait, in ms; default 30 s. A place that comes later is refused at once. */
  timeoutMs?: number | undefined
}

const DEFAULT_WAIT_MS = 30_000
/** How many may stand in line with a ticket. */
const MAX_WAITING = 10_000
/** How long a ticket counts after it could have been asked for, in µs: whoever is dead by then stands in nobody's way. */
const GRACE_US = 2_000_000
/** Who waits for slots asks again after so long, in ms: more often the nearer it stands, and always within its grace. */
const FIRST_TRY_MS = 5
const LAST_TRY_MS = 100
const FARTHEST_TRY_MS = 1000

/** One caller who waits. */
interface Wait {
  readonly judged: Judged
  readonly options: AcquireOptions
  readonly ticket: number
  readonly longestMs: number
  readonly begunMs: number
}

/** Somebody who sleeps. */
interface Sleeper {
  /** The counters of slots that it waits for. */
  readonly keys: readonly string[]
  wake(): void
  fail(error: unknown): void
}

/**
 * Those who wait. Where all limits book, a place is charged at once and its caller sleeps until it comes. Other limits
 * know no instant that holds: their callers stand in line with a ticket, which keeps what they wait for from whoever
 * comes later, and ask again when there should be room.
 */
export class Line {
  private readonly ways: Ways
  private readonly vacate: (parts: readonly Part[], decision: Decision, ticket: number) => Promise<void>
  private readonly sleepers = new Set<Sleeper>()
  /** Everybody who sleeps, until what is to be done for those who leave is done. */
  private readonly pauses = new Set<Promise<void>>()
  private leaving = 0
  private waiting = 0
  private closedBy: HeadgateError | undefined

  /** @param vacate gives up a place that was booked */
  constructor(ways: Ways, vacate: (parts: readonly Part[], decision: Decision, ticket: number) => Promise<void>) {
    this.ways = ways
    this.vacate = vacate
  }

  /** Whether somebody leaves the line: then the store is still to be asked. */
  get busy(): boolean {
    return this.leaving > 0
  }

  async acquire(judged: Judged, options: AcquireOptions = {}): Promise<Decision> {
    const { timeoutMs = DEFAULT_WAIT_MS } = options
    const longestMs = spanOf(timeoutMs, 'timeoutMs', 0)
    const wait: Wait = { judged, options, ticket: newId(), longestMs, begunMs: performance.now() }
    let decision = await this.ask(wait, 0)
    if (standsInLine(decision)) decision = await this.stand(wait, decision)
    if (decision.allowed) {
      const startUs = resultOf(decision) ?? 0
      const leftMs = Math.max(startUs / 1000 - decision.at, decision.delayMs)
      if (leftMs > 0) await this.pause(wait, leftMs, [], () => this.vacate(judged.parts, decision, wait.ticket))
      decision.delayMs = 0
    }
    decision.waitedMs = performance.now() - wait.begunMs
    return decision
  }

  /** Slots of these parts came back: who waits for them here, and came first, asks at once. */
  wake(parts: readonly Part[]): void {
    if (this.sleepers.size === 0) return
    const keys = parts.map(keyOf)
    for (const sleeper of this.sleepers) {
      if (!sleeper.keys.some((key) => keys.includes(key))) continue
      sleeper.wake()
      return
    }
  }

  /** Whoever still waits is told, and its place is given back. */
  async close(): Promise<void> {
    this.closedBy = new HeadgateError('HEADGATE_CLOSED', 'the limiter was closed while this caller waited')
    // The last one first: its place comes back whole, and then the one before it is the last.
    for (const sleeper of [...this.sleepers].reverse()) sleeper.fail(this.closedBy)
    await Promise.allSettled(this.pauses)
  }

  /** @param elapsedMs how long it waits already */
  private ask({ judged, options, ticket, longestMs }: Wait, elapsedMs: number): Promise<Decision> {
    const longestUs = Math.max(0, Math.floor((longestMs - elapsedMs) * 1000))
    const books = judged.parts.every(({ limit }) => limit.books === true) ? 1 : 0
    const parts = judged.parts.map((part) => patient(part, elapsedMs))
    const operation = op('book', longestUs, ticket, GRACE_US, books)
    return this.ways.run({ ...judged, parts, peek: false, operation }, options)
  }

  private async stand(wait: Wait, first: Decision): Promise<Decision> {
    const { parts } = wait.judged
    if (this.waiting >= MAX_WAITING) {
      await this.leave(wait, first)
      throw new HeadgateError('HEADGATE_BUSY', `${MAX_WAITING} callers wait already`)
    }
    this.waiting += 1
    try {
      let decision = first
      for (let tryMs = FIRST_TRY_MS; standsInLine(decision); tryMs = Math.min(LAST_TRY_MS, tryMs * 2)) {
        const held = decision
        const slots = parts.filter(({ limit }, i) => limit.holdsSlots && retryAfterMs(held, i) > 0)
        const leftMs = wait.begunMs + patienceMs(parts, held, wait.longestMs) - performance.now()
        const pauseMs = Math.min(nextTryMs(parts, held, tryMs), leftMs)
        const leave = () => this.leave(wait, held)
        if (pauseMs > 0) await this.pause(wait, pauseMs, slots.map(keyOf), leave)
        const elapsedMs = performance.now() - wait.begunMs
        decision = await this.ask(wait, pauseMs >= leftMs ? wait.longestMs : elapsedMs)
      }
      // One of its stores said never, another one keeps its place.
      if (!decision.allowed && (resultOf(decision) ?? 0) > 0) await this.leave(wait, decision)
      return decision
    } finally {
      this.waiting -= 1
    }
  }

  private async leave({ judged: { parts }, ticket }: Wait, decision: Decision): Promise<void> {
    const check = { parts, peek: false, operation: op('leave', ticket) }
    const where = decision.source === 'local' ? 'local' : 'store'
    await this.ways.operate(check, where).catch(() => undefined)
  }

  /** @param leave what is done where the caller leaves or is closed */
  private async pause(wait: Wait, ms: number, keys: readonly string[], leave: () => Promise<void>): Promise<void> {
    const pause = this.sleep(ms, keys, wait.options.signal).catch(async (error: unknown) => {
      this.leaving += 1
      await leave().finally(() => {
        this.leaving -= 1
      })
      throw error
    })
    this.pauses.add(pause)
    try {
      await pause
    } finally {
      this.pauses.delete(pause)
    }
  }

  private sleep(ms: number, keys: readonly string[], signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const untilMs = performance.now() + ms
      let timer: NodeJS.Timeout | undefined
      const end = (settle: () => void) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.sleepers.delete(sleeper)
        settle()
      }
      const sleeper: Sleeper = { keys, wake: () => end(resolve), fail: (error) => end(() => reject(error)) }
      const abort = () => sleeper.fail(signal?.reason)
      // A timer may fire early, and cannot wait for more than 24 days.
      const tick = () => {
        const leftMs = untilMs - performance.now()
        if (leftMs <= 0) sleeper.wake()
        else timer = setTimeout(tick, Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS))
      }
      this.sleepers.add(sleeper)
      signal?.addEventListener('abort', abort)
      if (this.closedBy !== undefined) sleeper.fail(this.closedBy)
      else if (signal?.aborted) abort()
      else tick()
    })
  }
}

/** Whether the store keeps a place for the caller who was refused. */
export function standsInLine(decision: Decision): boolean {
  return !decision.allowed && decision.reason === 'limit' && (resultOf(decision) ?? 0) > 0
}

/** A part with what is left of the longest wait of its own (µs, at least 1) as its id. */
function patient(part: Part, elapsedMs: number): Part {
  if (part.maxWaitMs === undefined) return part
  return { ...part, id: Math.max(1, Math.floor((part.maxWaitMs - elapsedMs) * 1000)) }
}

/** How long those that refuse let wait: the shortest of them counts. */
function patienceMs(parts: readonly Part[], { limits }: Decision, longestMs: number): number {
  return limits.reduce((shortestMs, { retryAfterMs }, i) => {
    const ownMs = parts[i]?.maxWaitMs
    return retryAfterMs > 0 && ownMs !== undefined && ownMs < shortestMs ? ownMs : shortestMs
  }, longestMs)
}

/** When to ask again: slots come back earlier than they lapse, everything else when it says. */
function nextTryMs(parts: readonly Part[], decision: Decision, tryMs: number): number {
  const before = (resultOf(decision) ?? 1) - 1
  return parts.reduce((nextMs, { limit }, i) => {
    const ownMs = retryAfterMs(decision, i)
    if (!limit.holdsSlots || ownMs === 0) return Math.max(nextMs, ownMs)
    const turns = 1 + Math.floor(before / Math.max(1, limit.limit))
    return Math.max(nextMs, Math.min(FARTHEST_TRY_MS, tryMs * turns, ownMs))
  }, 1)
}

function retryAfterMs({ limits }: Decision, i: number): number {
  return limits[i]?.retryAfterMs ?? 0
}
