import type { Decision, LimitStatus } from './decision.ts'
import { blankStatus, Decided } from './derive.ts'
import { InvalidArgumentError, show } from './errors.ts'
import { isSame, type Limit } from './limit.ts'
import { refuseUnknown } from './options.ts'
import { keyOf } from './part.ts'
import type { ChangeListener, Check, Part, Verdict } from './store.ts'

export interface DenyCacheOptions {
  /** How many refusals are remembered, integer ≥ 1; default 100,000, of some 300 bytes each. */
  maxEntries?: number
  /** How long one is repeated without asking the store again, in ms; default 10 s, and never above 1 s without announcements. */
  maxAgeMs?: number
}

/** A refusal of one limit under one key. */
interface Denial {
  readonly limit: Limit
  /** The least cost that was refused; a block refuses all. */
  readonly cost: number
  readonly blocked: boolean
  /** Until when it holds, on this process's clock. */
  readonly untilMs: number
  /** Until when it is repeated. */
  readonly freshMs: number
  /** Since when it holds, and the store's instant (µs) then. */
  readonly writtenMs: number
  readonly atUs: number
  readonly status: LimitStatus
}

const DEFAULT_ENTRIES = 100_000
const DEFAULT_AGE_MS = 10_000
/** What a refusal may be repeated for where nobody tells of changes, in ms. */
const UNTOLD_AGE_MS = 1000
/** A refusal that ends so soon is not worth remembering, in ms. */
const SHORTEST_MS = 2
/** Entries looked at for each new one: those that are over make room. */
const SWEEP = 2
/** When keys were last told of, by a hash of theirs: what was asked before says nothing any more. */
const TOLD = 4096

/**
 * Repeats refusals without asking the store, as long as the store would refuse too. It holds a refusal until the
 * instant at which its limit has room by itself; whatever else can make room, the store tells of. An entry that is in
 * force is never given up for another.
 */
export class DenyCache {
  private readonly entries = new Map<string, Denial>()
  private readonly maxEntries: number
  private readonly maxAgeMs: number
  private readonly clock: () => number
  private readonly told = new Float64Array(TOLD).fill(Number.NEGATIVE_INFINITY)
  private toldAllMs = Number.NEGATIVE_INFINITY
  private sweep: IterableIterator<[string, Denial]> | undefined
  /** Whether changes are told of. */
  private live = false

  /** @param clock in ms, of this process */
  constructor(options: DenyCacheOptions = {}, clock: () => number = () => performance.now()) {
    refuseUnknown(options, ['maxEntries', 'maxAgeMs'], 'denyCache')
    const { maxEntries = DEFAULT_ENTRIES, maxAgeMs = DEFAULT_AGE_MS } = options
    if (!Number.isSafeInteger(maxEntries) || maxEntries < 1 || maxEntries > 2 ** 24) {
      throw new InvalidArgumentError(
        'denyCache.maxEntries',
        `${show(maxEntries)} is not an integer from 1 to ${2 ** 24}`,
      )
    }
    if (typeof maxAgeMs !== 'number' || !(maxAgeMs >= 1 && maxAgeMs <= 3_600_000)) {
      throw new InvalidArgumentError('denyCache.maxAgeMs', `${show(maxAgeMs)} is not a number of ms from 1 to an hour`)
    }
    this.maxEntries = maxEntries
    this.maxAgeMs = maxAgeMs
    this.clock = clock
  }

  /** What the store's announcements go to. */
  get listener(): ChangeListener {
    return { onChange: (key) => this.forget(key), onLive: (live) => this.forgetAll(live) }
  }

  get size(): number {
    return this.entries.size
  }

  /** The refusal that the store would give; undefined: ask it. */
  find(check: Check): Decision | undefined {
    if (this.entries.size === 0 || !isPlain(check)) return undefined
    const nowMs = this.clock()
    const { parts } = check
    let found: Denial | undefined
    for (let p = 0; p < parts.length; p++) {
      const part = parts[p] as Part
      if (part.cost > part.limit.capacity) return undefined
      const denial = this.entries.get(keyOf(part))
      if (
        denial !== undefined &&
        refuses(denial, part, nowMs) &&
        (found === undefined || denial.untilMs > found.untilMs)
      ) {
        found = denial
      }
    }
    return found && repeat(found, parts, nowMs)
  }

  /** Remembers what the store refused. */
  keep(check: Check, verdict: Verdict): void {
    const { writtenMs = Number.NEGATIVE_INFINITY, nowUs } = verdict
    if (verdict.allowed || !isPlain(check) || writtenMs <= this.toldAllMs) return
    const longest = longestRefusal(check, verdict)
    if (longest === undefined || longest.waitMs < SHORTEST_MS) return
    const { part, status, blocked, waitMs } = longest
    const key = keyOf(part)
    if (writtenMs <= (this.told[hashOf(key)] as number)) return
    if (!this.entries.has(key) && !this.hasRoom()) return
    const ageMs = this.live ? this.maxAgeMs : Math.min(this.maxAgeMs, UNTOLD_AGE_MS)
    this.entries.set(key, {
      limit: part.limit,
      cost: part.cost,
      blocked,
      untilMs: writtenMs + waitMs,
      freshMs: writtenMs + Math.min(waitMs, ageMs),
      writtenMs,
      atUs: nowUs,
      status,
    })
  }

  /** What is done to these keys may end their refusals; what was asked before says nothing. */
  doubt({ parts }: Check): void {
    for (const part of parts) this.forget(keyOf(part))
  }

  /** A refusal on this key may no longer hold, nor one that was asked for before now. @param key without the prefix */
  forget(key: string): void {
    this.entries.delete(key)
    this.told[hashOf(key)] = this.clock()
  }

  /** Nothing that was told may be relied on: changes were missed, or are told of only from now on. */
  forgetAll(live: boolean): void {
    this.live = live
    this.sweep = undefined
    this.entries.clear()
    this.toldAllMs = this.clock()
  }

  /** Entries that are over make room, some at a time; those in force stay, whoever comes. */
  private hasRoom(): boolean {
    const nowMs = this.clock()
    for (let i = 0; i < SWEEP; i++) {
      this.sweep ??= this.entries.entries()
      const next = this.sweep.next()
      if (next.done) this.sweep = undefined
      else if (next.value[1].freshMs <= nowMs) this.entries.delete(next.value[0])
    }
    return this.entries.size < this.maxEntries
  }
}

/** A check that may be answered by a refusal alone: nothing is judged beside it. */
function isPlain({ peek, operation, followers }: Check): boolean {
  return !peek && operation === undefined && followers === undefined
}

function refuses({ limit, cost, blocked, freshMs }: Denial, part: Part, nowMs: number): boolean {
  if (freshMs <= nowMs || part.cost === 0) return false
  return blocked || (cost <= part.cost && (limit === part.limit || isSame(limit, part.limit)))
}

interface Refusal {
  readonly part: Part
  readonly status: LimitStatus
  readonly blocked: boolean
  readonly waitMs: number
}

/** Of the limits that refuse for a time, the one that does so for the longest. */
function longestRefusal(
  { parts }: Check,
  { view, at: from, nowUs, firm, blockedPart, blockedUs }: Verdict,
): Refusal | undefined {
  if (blockedPart >= 0) {
    const part = parts[blockedPart] as Part
    const waitMs = (blockedUs - nowUs) / 1000
    return {
      part,
      status: { ...statusOf(part, [], 0, nowUs), blocked: true, retryAfterMs: waitMs },
      blocked: true,
      waitMs,
    }
  }
  if (!firm) return undefined
  let longest: Refusal | undefined
  let at = from
  for (const part of parts) {
    const { limit, cost } = part
    if (limit.holdsSlots !== true && cost <= limit.capacity && !limit.admits(view, at, cost)) {
      const status = statusOf(part, view, at, nowUs)
      const waitMs = status.retryAfterMs
      if (longest === undefined || waitMs > longest.waitMs) longest = { part, status, blocked: false, waitMs }
    }
    at += limit.viewSize
  }
  return longest
}

function statusOf({ rule, name, limit, cost }: Part, view: readonly number[], at: number, nowUs: number): LimitStatus {
  const status = blankStatus(rule, name)
  const own = view.length > 0 ? view : unused(limit, nowUs)
  limit.tell(own, view.length > 0 ? at : 0, nowUs, view.length > 0 ? cost : 0, status)
  return status
}

function unused(limit: Limit, nowUs: number): number[] {
  const view: number[] = []
  limit.open(undefined, nowUs, view, 0, 0)
  return view
}

/** Of the other limits nothing is known: they are told as if unused. */
function repeat(
  { status, blocked, untilMs, writtenMs, atUs }: Denial,
  parts: readonly Part[],
  nowMs: number,
): Decision {
  const elapsedMs = nowMs - writtenMs
  // Whole µs, as the store's, and before the instant at which there is room.
  const nowUs = atUs + Math.min(Math.floor(elapsedMs * 1000), Math.ceil((untilMs - writtenMs) * 1000) - 1)
  const decision = new Decided(false, nowUs / 1000, 'deny-cache', false)
  const own: LimitStatus = {
    ...status,
    retryAfterMs: untilMs - nowMs,
    nextMs: Math.max(0, status.nextMs - elapsedMs),
    resetAfterMs: Math.max(0, status.resetAfterMs - elapsedMs),
  }
  for (const part of parts) {
    const isOwn = part.name === status.name && part.rule === status.rule
    decision.limits.push(isOwn ? own : statusOf(part, [], 0, nowUs))
  }
  decision.refuse({ status: own, reason: blocked ? 'blocked' : 'limit' }, 0)
  return decision
}

function hashOf(key: string): number {
  let hash = 0
  for (let i = 0; i < key.length; i++) hash = (hash * 31 + key.charCodeAt(i)) | 0
  return hash & (TOLD - 1)
}
