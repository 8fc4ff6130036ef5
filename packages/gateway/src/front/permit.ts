import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CheckItem, Decision, Engine, MatchedRule } from 'headgate'
import { MAX_TIMER_MS } from '../timers.ts'

/** How many requests may wait at once, for a place in line or for their turn; the next ones do not wait. */
const MAX_WAITING = 10_000
/** How long what a request may cost is held at most, in ms: longer than any answer takes to begin. */
const HOLD_MS = 300_000
/** How often a settlement is tried, and how long it waits before the next try, in ms. */
const SETTLE_TRIES = 4
const SETTLE_AGAIN_MS = 200
/** The longest that an engine lets wait, in ms: ten years. */
const LONGEST_WAIT_MS = 3660 * 86_400_000
/** How often slots are renewed in the shortest time that one lasts. */
const RENEWALS = 3

/** Whether a request's rules ask for more than a check: to wait, or to be charged by the answer. */
export function isPatient(rules: readonly MatchedRule[]): boolean {
  for (const rule of rules) {
    // What is not enforced changes no answer.
    if (rule.shadow === true) continue
    if (rule.countIf !== undefined || (rule.maxWaitMs !== undefined && rule.maxWaitMs > 0)) return true
  }
  return false
}

/** Whether an admitted request has to wait for its turn, or holds slots. */
export function holdsOn({ delayMs, release }: Decision): boolean {
  return delayMs > 0 || release !== undefined
}

/** Requests that wait, all together. */
export class Waiting {
  count = 0

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    this.count += 1
    try {
      for (let leftMs = ms; leftMs > 0; leftMs -= MAX_TIMER_MS) {
        await sleep(Math.min(leftMs, MAX_TIMER_MS), undefined, { signal })
      }
    } finally {
      this.count -= 1
    }
  }

  get full(): boolean {
    return this.count >= MAX_WAITING
  }
}

/**
 * What a request holds on to while it lives: a place in line, units that are charged by its answer,
 * slots. Whoever made it calls {@link close} once, however the request ends.
 */
export class Permit {
  readonly #engine: Engine
  readonly #items: readonly CheckItem[]
  readonly #rules: readonly MatchedRule[]
  readonly #waiting: Waiting
  readonly #gone = new AbortController()
  #id: string | undefined
  #settled = false
  #release: (() => Promise<void>) | undefined
  #renewal: NodeJS.Timeout | undefined

  constructor(engine: Engine, waiting: Waiting, items: readonly CheckItem[], rules: readonly MatchedRule[]) {
    this.#engine = engine
    this.#waiting = waiting
    this.#items = items
    this.#rules = rules.filter(({ shadow }) => shadow !== true)
  }

  /** Decides, waiting as the rules say. Rejects where the request is gone. */
  async decide(): Promise<Decision> {
    if (this.#rules.some(({ countIf }) => countIf !== undefined)) return this.hold(await this.#reserve())
    const waits = this.#rules.some(({ maxWaitMs = 0 }) => maxWaitMs > 0)
    if (!waits || this.#waiting.full) return this.hold(await this.#engine.check(this.#items))
    return this.hold(await this.#acquire())
  }

  /** Waits for the turn of what was admitted, and keeps its slots. Rejects where the request is gone. */
  async hold(decision: Decision): Promise<Decision> {
    const { delayMs, release } = decision
    if (release !== undefined) this.#keep(decision)
    if (!decision.allowed || delayMs === 0) return decision
    try {
      await this.#waiting.wait(delayMs, this.#gone.signal)
    } catch (error) {
      await this.#giveBack(decision)
      throw error
    }
    return decision
  }

  /**
   * The answer's status is known: what is counted by it is charged, or given back.
   * @param status undefined: there was none, and the request counts
   */
  settle(status: number | undefined): void {
    if (this.#settled || this.#id === undefined) return
    this.#settled = true
    void this.#commit(this.#id, status)
  }

  /** The request is over. */
  close(): void {
    this.#gone.abort()
    this.settle(undefined)
    clearInterval(this.#renewal)
    // A slot that cannot be given back now lapses by itself.
    this.#release?.().catch(() => undefined)
    this.#release = undefined
  }

  async #reserve(): Promise<Decision> {
    const id = randomUUID()
    const decision = await this.#engine.reserve(this.#items, { id, holdMs: HOLD_MS })
    if (decision.reservation !== undefined) this.#id = id
    if (this.#gone.signal.aborted) this.settle(undefined)
    return decision
  }

  async #acquire(): Promise<Decision> {
    const { signal } = this.#gone
    const items = this.#items.map((item) => ({ ...item, maxWaitMs: this.#patienceOf(item) }))
    const longestMs = Math.max(...items.map(({ maxWaitMs }) => maxWaitMs))
    this.#waiting.count += 1
    let decision: Decision
    try {
      decision = await this.#engine.acquire(items, { timeoutMs: longestMs, signal })
    } finally {
      this.#waiting.count -= 1
    }
    const overflow = decision.allowed ? undefined : this.#overflowOf(decision)
    if (overflow === undefined) return decision
    // It waited in vain: it passes, uncharged, and says so by its reason.
    const leftMs = overflow - (decision.waitedMs ?? 0)
    if (leftMs > 0) await this.#waiting.wait(leftMs, signal)
    decision.allowed = true
    decision.retryAfterMs = 0
    return decision
  }

  /** How long a limit lets wait, in ms: its rule says so, and a leaky bucket by its own line. */
  #patienceOf({ rule, limit }: CheckItem): number {
    const { maxWaitMs = 0 } = this.#rules.find(({ name }) => name === rule) ?? {}
    return maxWaitMs === 0 && limit.delayUs !== undefined ? Math.min(limit.spanUs / 1000, LONGEST_WAIT_MS) : maxWaitMs
  }

  /** How long it waits before it passes, in ms; undefined: a rule that refuses it does not let it by. */
  #overflowOf({ reason, limits }: Decision): number | undefined {
    if (reason !== 'limit') return undefined
    const refusing = limits.filter(({ retryAfterMs }) => retryAfterMs > 0)
    const rules = refusing.map((status) => this.#rules.find(({ name }) => name === status.rule))
    const passes = rules.every((rule) => rule?.afterWait === 'allow') && refusing.every(({ blocked }) => !blocked)
    return passes && rules.length > 0 ? Math.max(...rules.map((rule) => rule?.maxWaitMs ?? 0)) : undefined
  }

  #keep(decision: Decision): void {
    const { slotMs = Number.POSITIVE_INFINITY } = decision
    this.#release = decision.release?.bind(decision)
    if (this.#gone.signal.aborted) this.close()
    else this.#renewal = setInterval(() => this.#renew(decision), Math.min(slotMs / RENEWALS, MAX_TIMER_MS)).unref()
  }

  #renew(decision: Decision): void {
    decision.renew?.().catch(() => undefined)
  }

  async #giveBack({ receipt }: Decision): Promise<void> {
    if (receipt !== undefined) await this.#engine.refund(this.#items, { receipt }).catch(() => [])
  }

  /** Safe to repeat: the id is settled once. */
  async #commit(id: string, status: number | undefined): Promise<void> {
    const actual = this.#items.map((item) => (this.#counts(item, status) ? item : { ...item, cost: 0 }))
    const reservation = this.#engine.reservation(actual, id)
    for (let tries = 1; ; tries++) {
      try {
        await reservation.commit()
        return
      } catch {
        if (tries === SETTLE_TRIES) return
        await sleep(SETTLE_AGAIN_MS * tries, undefined, { ref: false })
      }
    }
  }

  #counts({ rule }: CheckItem, status: number | undefined): boolean {
    const countIf = this.#rules.find(({ name }) => name === rule)?.countIf
    return countIf === undefined || status === undefined || countIf.has(status)
  }
}
