import type { Codec, Limit, LimitNumbers, State } from '../../limit.ts'
import { CONCURRENCY } from '../codes.ts'
import { Counted } from '../counted.ts'
import { countUntil } from '../list.ts'
import { scoped } from '../params.ts'
import { type ConcurrencyOptions, type ConcurrencyParams, concurrencyParams, MAX_SLOTS } from './params.ts'
import { type ConcurrencyState, insert, live } from './step.ts'

export type { ConcurrencyOptions } from './params.ts'
export { type ConcurrencyState, release, renew } from './step.ts'

/**
 * At most `limit` slots held at once. A slot is held until it is released, or for `ttl` where its
 * holder is never heard of again.
 *
 * Law: never more than `limit` held at once; a dead holder's slot returns within its ttl.
 * @throws InvalidArgumentError naming the option
 */
export function concurrency(options: ConcurrencyOptions): Limit {
  return scoped(new Concurrency(concurrencyParams(options)), options.scope)
}

/**
 * View: slots held; the instant at which enough have lapsed for the cost (0: they fit now); the
 * instants at which the first and the last lapse (0: none is held).
 */
class Concurrency extends Counted implements Limit<ConcurrencyState> {
  readonly algorithm = 'concurrency'
  readonly code = CONCURRENCY
  readonly limit: number
  readonly capacity: number
  /** The ttl: what a slot lasts without its holder. */
  readonly periodUs: number
  readonly wire: readonly number[]
  readonly spanUs: number
  readonly viewSize = 4
  readonly weight: number
  readonly holdsSlots = true

  constructor({ limit, ttlUs }: ConcurrencyParams) {
    super()
    this.limit = limit
    this.capacity = limit
    this.periodUs = ttlUs
    this.spanUs = ttlUs
    this.wire = [CONCURRENCY, limit, ttlUs]
    this.weight = 1 + Math.ceil(limit / 512)
  }

  open(state: ConcurrencyState | undefined, nowUs: number, view: number[], at: number, cost: number): boolean {
    this.look(live(state, nowUs), view, at, cost)
    // A clock that was ahead, or a ttl that was longer.
    return (view[at + 3] as number) > nowUs + this.periodUs
  }

  /** What others count is not held by anybody. */
  adopt(_units: number, nowUs: number, view: number[], at: number): void {
    this.look(live(undefined, nowUs), view, at, 0)
  }

  wrote(): boolean {
    return true
  }

  postpone(view: number[], at: number, nowUs: number, _cost: number, waitUs: number): void {
    view[at + 1] = nowUs + waitUs
  }

  /** Slots come back earlier than they lapse: at any time. */
  override place(_view: readonly number[], _at: number, _nowUs: number, cost: number): number {
    return this.limit === 0 || cost > this.limit ? -1 : 0
  }

  take(
    state: State | undefined,
    nowUs: number,
    view: number[],
    at: number,
    cost: number,
    id: number,
  ): ConcurrencyState {
    const held = live(own(state), nowUs)
    // An id that holds slots has them: its first answer was lost.
    if (!held.ids.includes(id)) insert(held, nowUs + this.periodUs, id, cost)
    this.look(held, view, at, 0)
    return held
  }

  close(view: number[], at: number, nowUs: number, former?: State): ConcurrencyState {
    const held = live(own(former), nowUs)
    const latestUs = nowUs + this.periodUs
    const place = countUntil(held.lapses, latestUs)
    held.lapses = held.lapses.map((lapseUs, i) => (i < place ? lapseUs : latestUs))
    // What the view tells lapses by then too.
    for (let i = at + 1; i <= at + 3; i++) view[i] = Math.min(view[i] as number, latestUs)
    return held
  }

  receiptUs(): number {
    return 0
  }

  tell(view: readonly number[], at: number, nowUs: number, cost: number, status: LimitNumbers): void {
    const held = view[at] as number
    status.limit = this.limit
    status.capacity = this.limit
    delete status.periodMs
    status.remaining = this.room(view, at)
    if (this.limit === 0 || cost > this.limit) status.retryAfterMs = Number.POSITIVE_INFINITY
    else if (cost > 0 && held > this.limit - cost) {
      status.retryAfterMs = Math.max(1, (view[at + 1] as number) - nowUs) / 1000
    }
    if ((view[at + 3] as number) === 0) return
    status.nextMs = ((view[at + 2] as number) - nowUs) / 1000
    status.resetAfterMs = ((view[at + 3] as number) - nowUs) / 1000
  }

  /** N/k slots, at least one. */
  share(instances: number): Limit {
    if (this.limit === 0 || instances === 1) return this
    return new Concurrency({ limit: Math.max(1, Math.floor(this.limit / instances)), ttlUs: this.periodUs })
  }

  private look({ lapses }: ConcurrencyState, view: number[], at: number, cost: number): void {
    const held = lapses.length
    const over = held + cost - this.limit
    view[at] = held
    view[at + 1] = over > 0 && held > 0 ? (lapses[Math.min(over, held) - 1] as number) : 0
    view[at + 2] = lapses[0] ?? 0
    view[at + 3] = lapses[held - 1] ?? 0
  }
}

function own(state: State | undefined): ConcurrencyState | undefined {
  return state?.code === CONCURRENCY ? (state as ConcurrencyState) : undefined
}

const SLOT = 16

/** Stored: the code, then for each slot when it lapses (µs) and its holder's id, as big-endian doubles. */
export const concurrencyCodec: Codec<ConcurrencyState> = {
  code: CONCURRENCY,

  encode({ lapses, ids }) {
    const raw = Buffer.allocUnsafe(1 + lapses.length * SLOT)
    raw.writeUInt8(CONCURRENCY, 0)
    lapses.forEach((lapseUs, i) => {
      raw.writeDoubleBE(lapseUs, 1 + i * SLOT)
      raw.writeDoubleBE(ids[i] as number, 9 + i * SLOT)
    })
    return raw
  },

  decode(raw) {
    const count = (raw.length - 1) / SLOT
    if (raw[0] !== CONCURRENCY || !Number.isInteger(count) || count > MAX_SLOTS) return undefined
    const lapses = Array.from({ length: count }, (_, i) => raw.readDoubleBE(1 + i * SLOT))
    const ids = Array.from({ length: count }, (_, i) => raw.readDoubleBE(9 + i * SLOT))
    const [first = 0, last = 0] = [lapses[0], lapses[count - 1]]
    const sound = [first, last].every((x) => x >= 0 && Number.isSafeInteger(x)) && first <= last
    return sound ? { code: CONCURRENCY, lapses, ids } : undefined
  },

  used(state, nowUs) {
    return live(state, nowUs).lapses.length
  },

  roomAfterUs(state, nowUs, units) {
    const { lapses } = live(state, nowUs)
    const over = lapses.length - units
    return over > 0 ? (lapses[over - 1] as number) - nowUs : 0
  },

  ahead({ lapses }, nowUs, spanUs) {
    return lapses.length > 0 && (lapses[lapses.length - 1] as number) > nowUs + spanUs
  },

  lifetimeUs({ lapses }, nowUs) {
    const last = lapses[lapses.length - 1] ?? 0
    return last > nowUs ? last - nowUs : 0
  },

  /** Slots are released, not given back. */
  give: () => 0,
}
