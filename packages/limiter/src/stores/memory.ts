import { type Clock, monotonicClock } from '../clock.ts'
import { InvalidArgumentError } from '../errors.ts'
import type { State } from '../limit.ts'
import { judge, type States } from '../script/judge.ts'
import type { Check, LocalStore, Verdict } from '../store.ts'

export interface MemoryStoreOptions {
  /** The most counters kept, default 1,000,000; beyond it the one nearest to unused gives way. */
  maxKeys?: number
  /** The time in integer µs since the Unix epoch; default a clock that never steps back. */
  clock?: Clock
}

/** A store in this process's memory. */
export interface MemoryStore extends LocalStore {
  /** How many counters are kept now; those that read as unused leave by and by. */
  readonly size: number
}

/** Counters in this process's memory: exact, for one process. It has no timer and needs no closing. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const { maxKeys = 1_000_000, clock = monotonicClock() } = options
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1) {
    throw new InvalidArgumentError('maxKeys', `${maxKeys} is not an integer from 1`)
  }
  return new Memory(maxKeys, clock)
}

interface Entry {
  readonly key: string
  state: State
  /** The instant at which the state reads as unused. */
  unusedAtUs: number
  /** Its place in `ring`. */
  place: number
}

/** How many entries each write looks at in passing, to drop what reads as unused. */
const SWEEP = 2
/** How many entries are compared when one has to give way. */
const CANDIDATES = 16

class Memory implements MemoryStore, States {
  readonly kind = 'local'
  private readonly maxKeys: number
  private readonly clock: Clock
  private readonly entries = new Map<string, Entry>()
  /** All entries without order, so that a hand can go round them in small steps. */
  private readonly ring: Entry[] = []
  private hand = 0
  private nowUs = 0

  constructor(maxKeys: number, clock: Clock) {
    this.maxKeys = maxKeys
    this.clock = clock
  }

  get size(): number {
    return this.entries.size
  }

  judge(check: Check): Verdict {
    this.nowUs = this.clock()
    const view: number[] = []
    this.sweep(SWEEP)
    const allowed = judge(check, this, this.nowUs, view)
    return { allowed, nowUs: this.nowUs, view, at: 0 }
  }

  read(key: string): State | undefined {
    return this.entries.get(key)?.state
  }

  write(key: string, state: State, lifetimeUs: number): void {
    const unusedAtUs = this.nowUs + lifetimeUs
    const entry = this.entries.get(key)
    if (entry !== undefined) {
      entry.state = state
      entry.unusedAtUs = unusedAtUs
      return
    }
    if (this.entries.size >= this.maxKeys) this.makeRoom()
    const added = { key, state, unusedAtUs, place: this.ring.length }
    this.entries.set(key, added)
    this.ring.push(added)
  }

  reset(keys: readonly string[]): void {
    for (const key of keys) {
      const entry = this.entries.get(key)
      if (entry !== undefined) this.remove(entry)
    }
  }

  async close(): Promise<void> {
    this.entries.clear()
    this.ring.length = 0
  }

  /** Goes a few entries further round and drops those that read as unused: no timer, O(1) a call. */
  private sweep(steps: number): void {
    for (let step = 0; step < steps; step++) {
      const entry = this.next()
      if (entry === undefined) return
      if (entry.unusedAtUs <= this.nowUs) this.remove(entry)
    }
  }

  /** The entry that would be unused first gives way: an exhausted one is the last to be forgotten. */
  private makeRoom(): void {
    let first = this.next()
    for (let i = 1; i < CANDIDATES; i++) {
      const other = this.next()
      if (first === undefined || (other !== undefined && other.unusedAtUs < first.unusedAtUs)) first = other
    }
    if (first !== undefined) this.remove(first)
  }

  private next(): Entry | undefined {
    if (this.hand >= this.ring.length) this.hand = 0
    return this.ring[this.hand++]
  }

  private remove(entry: Entry): void {
    this.entries.delete(entry.key)
    const last = this.ring.pop() as Entry
    if (last !== entry) {
      this.ring[entry.place] = last
      last.place = entry.place
    }
  }
}
