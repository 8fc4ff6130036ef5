import type { Decision, LibraryFailurePolicy } from './decision.ts'
import type { DenyCacheOptions } from './deny-cache.ts'
import { EngineCore } from './engine.ts'
import { HeadgateError, InvalidArgumentError, show } from './errors.ts'
import type { EngineEvents } from './events.ts'
import { encodeValue, NAME } from './keys/index.ts'
import type { Limit } from './limit.ts'
import type { AcquireOptions } from './line.ts'
import type { BlockOptions, Grant, RefundOptions, Reservation, Reserved, ReserveOptions } from './operations.ts'
import { refuseUnknown } from './options.ts'
import { type Accuracy, accuracyOf, costOf, MAX_PARTS, policyOf } from './part.ts'
import type { Part, Store } from './store.ts'
import type { CheckOptions } from './ways.ts'
import { type WrapOptions, wrap } from './wrap.ts'

export interface LimiterOptions<Names extends string = string> {
  /** Begins the keys of its counters; the same on every instance. Letters, digits, `.`, `_`, `-`; at most 64. */
  name: string
  store: Store
  /** One limit: calls take one key. */
  limit?: Limit
  /** One or many limits, by name, checked all or nothing: calls take one key for each. */
  limits?: Record<Names, Limit>
  /** What decides when the store does not answer in time; default `local`. */
  onStoreFailure?: LibraryFailurePolicy
  /** How long a decision may wait for the store, in ms; default 50. */
  timeoutMs?: number
  /** How many processes enforce the same budget: each takes its share while the store is away. Default 1. */
  instances?: number
  /** How refusals are repeated without asking a store behind a network; `false`: never. */
  denyCache?: DenyCacheOptions | false
  /** `lease`: this process may take units ahead of a store behind a network and decide from them; default `exact`. */
  accuracy?: Accuracy
}

/** One key for a one-limit limiter, else one for each limit; `''` is a valid key (a global limit's). */
export type Keys<Names extends string = string> = string | Readonly<Record<Names, string>>

export interface LimiterCheckOptions extends CheckOptions {
  /** Units to take from every limit, integer ≥ 0; default 1; 0 only asks. */
  cost?: number
}

/** Says who may do what how often. A refusal is a value; only an invalid argument throws. */
export interface Limiter<Names extends string = string> {
  readonly name: string
  /** True while decisions are made without the store. */
  readonly degraded: boolean
  /** Units that this process has taken ahead (`accuracy: 'lease'`) and not used. */
  readonly strandedUnits: number
  /** Takes the cost from every limit, or from none. */
  check(keys: Keys<Names>, options?: LimiterCheckOptions): Promise<Decision>
  /** The same answer; nothing is written, created or extended. */
  peek(keys: Keys<Names>, options?: LimiterCheckOptions): Promise<Decision>
  /** Takes as much as all limits can give, at most `most` units (integer ≥ 1). */
  takeUpTo(keys: Keys<Names>, most: number, options?: CheckOptions): Promise<Grant>
  /**
   * Waits in line, then takes the cost: resolves when the caller may proceed, or with a refusal, at once where the wait
   * would exceed `timeoutMs` (default 30 s). `waitedMs` says how long it was. Token buckets, leaky buckets and fixed
   * windows book the place in the store: first come first served across processes, and one sleep.
   */
  acquire(keys: Keys<Names>, options?: AcquireOptions & LimiterCheckOptions): Promise<Decision>
  /** Takes the cost, and holds it until it is committed, cancelled or lapses (`holdMs`, default a minute). */
  reserve(keys: Keys<Names>, options?: ReserveOptions & LimiterCheckOptions): Promise<Reserved>
  /** The reservation of an id, also one that another process made. */
  reservation(keys: Keys<Names>, id: string): Reservation
  /**
   * Gives `cost` back: with a receipt what has not drained of that charge, by default all of it; without one (default
   * 1) it is a credit.
   * @returns for each limit how many units came back. Rejects with StoreUnavailableError when the store is gone
   */
  refund(keys: Keys<Names>, options?: RefundOptions & { cost?: number }): Promise<number[]>
  /**
   * The function, limited: a call that is refused rejects with RateLimitedError and runs nothing. Slots are held
   * while it runs.
   */
  wrap<This, Args extends unknown[], Result>(
    fn: (this: This, ...args: Args) => Result | Promise<Result>,
    options?: WrapOptions<Args>,
  ): (this: This, ...args: Args) => Promise<Result>
  /** Forgets these counters, not a block. Rejects with StoreUnavailableError when the store is gone. */
  reset(keys: Keys<Names>): Promise<void>
  /** Refuses everything on these keys, whatever is reset; default for ever. Rejects when the store is gone. */
  block(keys: Keys<Names>, options?: BlockOptions): Promise<void>
  /** @returns whether any of the keys was blocked. Rejects with StoreUnavailableError when the store is gone */
  unblock(keys: Keys<Names>): Promise<boolean>
  /** @returns a function that takes the listener off again */
  on<E extends keyof EngineEvents>(event: E, listener: (payload: EngineEvents[E]) => void): () => void
  /** Leaves nothing behind; never closes the store. */
  close(): Promise<void>
}

/** @throws InvalidArgumentError naming the option; HEADGATE_NAME_CONFLICT where the name is taken by other numbers */
export function createLimiter<Names extends string>(options: LimiterOptions<Names>): Limiter<Names> {
  return new LimiterCore(options) as Limiter<Names>
}

const CHECK_OPTIONS = ['cost', 'signal']
const ACQUIRE_OPTIONS = ['cost', 'timeoutMs', 'signal']
const RESERVE_OPTIONS = ['cost', 'holdMs', 'id', 'signal']
const REFUND_OPTIONS = ['cost', 'receipt', 'id']
const BLOCK_OPTIONS = ['durationMs']
const OPTIONS = [
  'name',
  'store',
  'limit',
  'limits',
  'onStoreFailure',
  'timeoutMs',
  'instances',
  'denyCache',
  'accuracy',
]

interface Named {
  readonly name: string
  readonly rule: string | undefined
  readonly limit: Limit
  /** What stands before the value in the counter's key. */
  readonly space: string
}

class LimiterCore implements Limiter {
  readonly name: string
  private readonly engine: EngineCore
  private readonly onStoreFailure: LibraryFailurePolicy
  private readonly accuracy: Accuracy
  private readonly single: boolean
  private readonly limits: readonly Named[]
  private readonly release: () => void

  constructor(options: LimiterOptions) {
    refuseUnknown(options, OPTIONS, 'createLimiter')
    const { name, store, onStoreFailure = 'local' } = options
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw new InvalidArgumentError(
        'name',
        `${show(name)} is not a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -`,
      )
    }
    this.name = name
    this.onStoreFailure = policyOf(onStoreFailure)
    this.accuracy = accuracyOf(options.accuracy)
    this.single = options.limit !== undefined
    this.limits = limitsOf(options)
    const { timeoutMs, instances, denyCache } = options
    this.engine = new EngineCore({
      store,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(denyCache !== undefined && { denyCache }),
      ...(instances !== undefined && { instances }),
    })
    try {
      this.release = claimName(store, name, this.limits)
    } catch (error) {
      void this.engine.close()
      throw error
    }
  }

  get degraded(): boolean {
    return this.engine.degraded
  }

  get strandedUnits(): number {
    return this.engine.strandedUnits
  }

  check(keys: Keys, options?: LimiterCheckOptions): Promise<Decision> {
    return this.run(keys, false, options)
  }

  peek(keys: Keys, options?: LimiterCheckOptions): Promise<Decision> {
    return this.run(keys, true, options)
  }

  async takeUpTo(keys: Keys, most: number, options?: CheckOptions): Promise<Grant> {
    return this.engine.operations.takeUpTo(this.parts(keys, 1), most, options)
  }

  async acquire(keys: Keys, options?: AcquireOptions & LimiterCheckOptions): Promise<Decision> {
    return this.engine.operations.acquire({ parts: this.costing(keys, options, ACQUIRE_OPTIONS) }, options)
  }

  async reserve(keys: Keys, options?: ReserveOptions & LimiterCheckOptions): Promise<Reserved> {
    return this.engine.operations.reserve({ parts: this.costing(keys, options, RESERVE_OPTIONS) }, options)
  }

  reservation(keys: Keys, id: string): Reservation {
    return this.engine.operations.reservation(this.parts(keys, 1), id)
  }

  async refund(keys: Keys, options?: RefundOptions & { cost?: number }): Promise<number[]> {
    const parts = this.costing(keys, options, REFUND_OPTIONS)
    const isWhole = options?.cost === undefined
    return this.engine.operations.refund(
      parts,
      options,
      parts.map(() => isWhole),
    )
  }

  wrap<This, Args extends unknown[], Result>(
    fn: (this: This, ...args: Args) => Result | Promise<Result>,
    options?: WrapOptions<Args>,
  ): (this: This, ...args: Args) => Promise<Result> {
    return wrap(this, fn, options)
  }

  async reset(keys: Keys): Promise<void> {
    await this.engine.operations.reset(this.parts(keys, 1))
  }

  async block(keys: Keys, options?: BlockOptions): Promise<void> {
    if (options !== undefined) refuseUnknown(options, BLOCK_OPTIONS, 'block')
    await this.engine.operations.block(this.parts(keys, 1), options)
  }

  async unblock(keys: Keys): Promise<boolean> {
    return this.engine.operations.unblock(this.parts(keys, 1))
  }

  on<E extends keyof EngineEvents>(event: E, listener: (payload: EngineEvents[E]) => void): () => void {
    return this.engine.on(event, listener)
  }

  async close(): Promise<void> {
    this.release()
    await this.engine.close()
  }

  private run(keys: Keys, peek: boolean, options?: LimiterCheckOptions): Promise<Decision> {
    let parts: Part[]
    try {
      parts = this.costing(keys, options)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.engine.run({ parts, peek }, options)
  }

  private costing(keys: Keys, options: { readonly cost?: number } | undefined, known = CHECK_OPTIONS): Part[] {
    if (options !== undefined) refuseUnknown(options, known, 'options')
    return this.parts(keys, options?.cost === undefined ? 1 : costOf(options.cost))
  }

  private parts(keys: Keys, cost: number): Part[] {
    if (this.single) return [this.part(this.limits[0] as Named, keys, cost)]
    if (typeof keys !== 'object' || keys === null) {
      throw new InvalidArgumentError('keys', `${show(keys)} is not an object with one key for each of ${this.listed()}`)
    }
    const parts = this.limits.map((named) => this.part(named, keys[named.name], cost))
    for (const name in keys) {
      if (!this.limits.some((named) => named.name === name)) {
        throw new InvalidArgumentError(`keys.${name}`, `no limit has this name; there are ${this.listed()}`)
      }
    }
    return parts
  }

  private part({ name, rule, limit, space }: Named, key: unknown, cost: number): Part {
    if (typeof key !== 'string') {
      throw new InvalidArgumentError(this.single ? 'key' : `keys.${name}`, `${show(key)} is not a string`)
    }
    const { onStoreFailure, accuracy } = this
    return { rule, name, limit, space, value: encodeValue(key), cost, onStoreFailure, accuracy }
  }

  private listed(): string {
    return this.limits.map((named) => named.name).join(', ')
  }
}

function limitsOf({ name, limit, limits }: LimiterOptions): Named[] {
  if ((limit === undefined) === (limits === undefined)) {
    throw new InvalidArgumentError('limits', "give either 'limit' (one) or 'limits' (one or many by name)")
  }
  if (limit !== undefined) return [{ name, rule: undefined, limit: limitOf(limit, 'limit'), space: `${name}:` }]
  const count = typeof limits === 'object' && limits !== null ? Object.keys(limits).length : 0
  if (count < 1 || count > MAX_PARTS) {
    const given = typeof limits === 'object' && limits !== null ? `an object with ${count}` : show(limits)
    throw new InvalidArgumentError('limits', `${given} is not an object with 1 to ${MAX_PARTS} limits by name`)
  }
  return Object.entries(limits as Record<string, Limit>).map(([own, each]) => {
    if (!NAME.test(own))
      throw new InvalidArgumentError(`limits.${own}`, 'names are a letter or digit, then A-Z a-z 0-9 . _ -')
    return { name: own, rule: name, limit: limitOf(each, `limits.${own}`), space: `${name}:${own}:` }
  })
}

function limitOf(limit: unknown, argument: string): Limit {
  if (typeof limit === 'object' && limit !== null && 'wire' in limit) return limit as Limit
  throw new InvalidArgumentError(
    argument,
    `${show(limit)} is not a limit; use tokenBucket({ … }), fixedWindow({ … }) …`,
  )
}

/** Who uses which name on a store: two budgets under one name would be counted in each other's keys. */
const claims = new WeakMap<Store, Map<string, { numbers: string; owners: number }>>()

function claimName(store: Store, name: string, limits: readonly Named[]): () => void {
  const names = claims.get(store) ?? new Map<string, { numbers: string; owners: number }>()
  claims.set(store, names)
  const numbers = JSON.stringify(
    limits.map(({ space, limit: { wire, scope, startsEmpty } }) => [space, wire, scope, startsEmpty === true]),
  )
  const claim = names.get(name) ?? { numbers, owners: 0 }
  if (claim.numbers !== numbers) {
    throw new HeadgateError(
      'HEADGATE_NAME_CONFLICT',
      `name: ${show(name)} is used on this store with other limits; close that limiter first or choose another name`,
    )
  }
  claim.owners += 1
  names.set(name, claim)
  let released = false
  return () => {
    if (released) return
    released = true
    claim.owners -= 1
    if (claim.owners === 0) names.delete(name)
  }
}
