import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CheckItem, Decision, Engine, MatchedRule } from 'headgate'

/** How many requests may wait at once, for a place in line or for their turn; the next ones do not wait. */
const MAX_WAITING = 10_000
/** How long what a request may cost is held at most, in ms: longer than any answer takes to begin. */
const HOLD_MS = 300_000
/** How often a settlement is tried, and how long it waits before the next try, in ms. */
const SETTLE_TRIES = 4
const SETTLE_AGAIN_MS = 200
/** How often slots are renewed in the shortest time that one lasts. */
const RENEWALS = 3

/** Whether a request's rules ask for more than a check: to wait, or to be charged by the answer. */
export function isPatient(rules: readonly MatchedRule[]): boolean {
  for (const { maxWaitMs, countIf } of rules) {
    if (countIf !== undefined || (maxWaitMs !== undefined && maxWaitMs > 0)) return true
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
      await sleep(ms, undefined, { signal })
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
    this.#rules = rules
  }

  /** Decides, waiting as the rules say. Rejects where the request is gone. */
  async decide(): Promise<Decision> {
    if (this.#rules.some(({ countIf }) => countIf !== undefined)) return this.hold(await this.#reserve())
    const longestMs = Math.max(0, ...this.#rules.map(({ maxWaitMs = 0 }) => maxWaitMs))
    if (longestMs === 0 || this.#waiting.full) return this.hold(await this.#engine.check(this.#items))
    return this.hold(await this.#acquire(longestMs))
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

  async #acquire(longestMs: number): Promise<Decision> {
    const { signal } = this.#gone
    this.#waiting.count += 1
    let decision: Decision
    try {
      decision = await this.#engine.acquire(this.#items, { timeoutMs: longestMs, signal })
    } finally {
      this.#waiting.count -= 1
    }
    const refuser = this.#rules.find(({ name }) => name === decision.rule)
    if (decision.allowed || decision.reason !== 'limit' || refuser?.afterWait !== 'allow') return decision
    // It waited in vain: it passes, uncharged, and says so by its reason.
    const leftMs = (refuser.maxWaitMs ?? 0) - (decision.waitedMs ?? 0)
    if (leftMs > 0) await this.#waiting.wait(leftMs, signal)
    decision.allowed = true
    decision.retryAfterMs = 0
    return decision
  }

  #keep(decision: Decision): void {
    const lastsMs = this.#items.flatMap(({ limit }) => (limit.holdsSlots === true ? [limit.periodUs / 1000] : []))
    this.#release = decision.release?.bind(decision)
    if (this.#gone.signal.aborted) this.close()
    else this.#renewal = setInterval(() => this.#renew(decision), Math.min(...lastsMs) / RENEWALS).unref()
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
