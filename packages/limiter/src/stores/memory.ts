import { type Clock, monotonicClock } from '../clock.ts'
import { InvalidArgumentError, show } from '../errors.ts'
import type { State } from '../limit.ts'
import { refuseUnknown } from '../options.ts'
import { judge } from '../script/judge.ts'
import { blank, type Slot, type Slots } from '../script/judging.ts'
import { type Mark, usedShare } from '../script/marks.ts'
import type { Check, LocalStore, Part, Verdict } from '../store.ts'

export interface MemoryStoreOptions {
  /** The most counters kept, default 1,000,000; beyond it one of those that are least used gives way. */
  maxKeys?: number
  /** The time in integer µs since the Unix epoch; default a clock that never steps back. */
  clock?: Clock
}

/** A store in this process's memory. */
export interface MemoryStore extends LocalStore {
  /** How many counters are kept now; those that read as unused leave by and by. */
  readonly size: number
  /** How many checks were counted together with others', since only exhausted counters were left. */
  readonly overflowed: number
}

/** Counters in this process's memory: exact, for one process. It keeps no process alive. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  refuseUnknown(options, ['maxKeys', 'clock'], 'memoryStore')
  const { maxKeys = 1_000_000, clock = monotonicClock() } = options
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1) {
    throw new InvalidArgumentError('maxKeys', `${show(maxKeys)} is not an integer from 1`)
  }
  if (typeof clock !== 'function') throw new InvalidArgumentError('clock', `${show(clock)} is not a function`)
  return new Memory(maxKeys, clock)
}

interface Entry extends Slot {
  readonly value: string
  /** The entries of its space. */
  readonly space: Map<string, Entry>
  /** Its place in `ring`. */
  place: number
}

/** How often entries that read as unused are dropped, and how many are looked at in one go. */
const SWEEP_EVERY_MS = 50
const SWEEP_ENTRIES = 20_000
/** How many entries are compared when one has to give way. */
const CANDIDATES = 16

/** Who is new shares this counter of a limit while nobody can be forgotten. No encoded value is like it. */
const OVERFLOW = '~overflow'

class Memory implements MemoryStore, Slots {
  readonly kind = 'local'
  private readonly maxKeys: number
  private readonly clock: Clock
  /** By space, then by value: looking up does not have to put a key together. */
  private readonly spaces = new Map<string, Map<string, Entry>>()
  /** All entries without order, so that a hand can go round them in small steps. */
  private readonly ring: Entry[] = []
  private hand = 0
  overflowed = 0
  /** Every check's verdict; it is read before the next one is judged. (An array that once held a fraction keeps doubles.) */
  private readonly verdict = blank([0.5])
  private sweeper: NodeJS.Timeout | undefined

  constructor(maxKeys: number, clock: Clock) {
    this.maxKeys = maxKeys
    this.clock = clock
  }

  get size(): number {
    return this.ring.length
  }

  judge(check: Check): Verdict {
    const nowUs = this.clock()
    // NaN would pass every comparison the wrong way: no limit at all.
    if (!Number.isSafeInteger(nowUs) || nowUs < 0) {
      throw new InvalidArgumentError('clock', `it gave ${show(nowUs)}, which is not an integer of µs since 1970`)
    }
    judge(check, this, nowUs, this.verdict)
    return this.verdict
  }

  find(space: string, value: string): Slot | undefined {
    const entry = this.spaces.get(space)?.get(value)
    if (entry !== undefined || this.ring.length < this.maxKeys) return entry
    const least = this.leastUsed()
    if (least !== undefined) {
      this.remove(least)
      return undefined
    }
    // Nobody may be forgotten: whoever is new shares one counter with all who are.
    this.overflowed += 1
    return this.spaces.get(space)?.get(OVERFLOW) ?? this.put(space, OVERFLOW, undefined, undefined, 0, 1)
  }

  add(part: Part, state: State | undefined, mark: Mark | undefined, unusedAtUs: number): void {
    // Room was made when it was not found; the parts of one check may take a little more.
    const least = this.ring.length >= this.maxKeys ? this.leastUsed() : undefined
    if (least !== undefined) this.remove(least)
    this.put(part.space, part.value, state, mark, unusedAtUs, part.limit.capacity)
  }

  private put(
    space: string,
    value: string,
    state: State | undefined,
    mark: Mark | undefined,
    unusedAtUs: number,
    capacity: number,
  ): Entry {
    let entries = this.spaces.get(space)
    if (entries === undefined) {
      entries = new Map()
      this.spaces.set(space, entries)
    }
    const entry = { value, space: entries, state, mark, unusedAtUs, capacity, place: this.ring.length }
    entries.set(value, entry)
    this.ring.push(entry)
    this.sweeper ??= this.sweepLater()
    return entry
  }

  async close(): Promise<void> {
    clearTimeout(this.sweeper)
    this.sweeper = undefined
    this.spaces.clear()
    this.ring.length = 0
  }

  /** Only memory depends on this timer, never a decision: a state says itself when it is unused. */
  private sweepLater(): NodeJS.Timeout {
    return setTimeout(() => this.sweep(), SWEEP_EVERY_MS).unref()
  }

  private sweep(): void {
    const nowUs = this.clock()
    for (let left = Math.min(SWEEP_ENTRIES, this.ring.length); left > 0; left--) {
      const entry = this.next()
      if (entry !== undefined && entry.unusedAtUs <= nowUs) this.remove(entry)
    }
    this.sweeper = this.ring.length > 0 ? this.sweepLater() : undefined
    // An array that shrank entry by entry keeps much of the room it had, until its length is set.
    if (this.ring.length === 0) this.ring.length = 0
  }

  /** Of some entries, the one of whose budget the least is used; undefined: all of them are exhausted. */
  private leastUsed(): Entry | undefined {
    const nowUs = this.clock()
    let least: Entry | undefined
    let leastShare = 1
    for (let i = 0; i < CANDIDATES; i++) {
      const entry = this.any()
      // The shared counter stands for many.
      const shared = entry === undefined || entry.value === OVERFLOW
      const share = shared ? 1 : usedShare(entry, entry.capacity, nowUs)
      if (share < leastShare) {
        least = entry
        leastShare = share
      }
    }
    return least
  }

  /** Neighbours came together and may all be exhausted; a choice at random hardly ever is. */
  private any(): Entry | undefined {
    return this.ring[Math.floor(Math.random() * this.ring.length)]
  }

  private next(): Entry | undefined {
    if (this.hand >= this.ring.length) this.hand = 0
    return this.ring[this.hand++]
  }

  private remove(entry: Entry): void {
    entry.space.delete(entry.value)
    const last = this.ring.pop() as Entry
    if (last !== entry) {
      this.ring[entry.place] = last
      last.place = entry.place
    }
  }
}
