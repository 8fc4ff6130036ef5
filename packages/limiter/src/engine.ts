import { channel } from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import type { Decision } from './decision.ts'
import { deriveDecision } from './derive.ts'
import { HeadgateError, InvalidArgumentError, StoreUnavailableError, show } from './errors.ts'
import { Door } from './failure/door.ts'
import { Policy } from './failure/policy.ts'
import { refuseUnknown } from './options.ts'
import { type CheckItem, partsOf } from './part.ts'
import type { Check, LocalStore, Part, RemoteStore, Store } from './store.ts'
import { memoryStore } from './stores/memory.ts'

export interface EngineOptions {
  store: Store
  /** How long a decision may wait for the store, in ms; default 50. */
  timeoutMs?: number
  /** How many processes enforce the same budget: each takes its share while the store is away. Default 1. */
  instances?: number
}

export interface EngineEvents {
  /** Every decision; `items` are what was judged, with the counters' keys. */
  decision: { readonly decision: Decision; readonly items: readonly Part[]; readonly peek: boolean }
  /** The store stopped answering: from now on the limits' policies decide. */
  degraded: { readonly reason: string; readonly kind: string }
  /** The store answers again. */
  recovered: { readonly awayMs: number }
  /** The store answered a batch of checks. */
  roundTrip: { readonly durationMs: number; readonly checks: number }
  /** Something went wrong that no caller sees, such as a store fault or garbage replaced; `count` how often. */
  error: { readonly message: string; readonly kind: string; readonly count: number }
}

export interface CheckOptions {
  /** Aborting rejects with the signal's reason; what was already written stays charged. */
  signal?: AbortSignal | undefined
}

/** Judges limits of several rules as one check. `createLimiter` is a shell over it. */
export interface Engine {
  /** True while decisions are made without the store. */
  readonly degraded: boolean
  /**
   * Charges every limit, or none.
   * @throws InvalidArgumentError (rejected) before anything is charged
   */
  check(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision>
  /** The same answer; nothing is written, created or extended. */
  peek(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision>
  /** Forgets the counters. Rejects with StoreUnavailableError when the store is gone. */
  reset(items: readonly CheckItem[]): Promise<void>
  /** @returns a function that takes the listener off again */
  on<E extends keyof EngineEvents>(event: E, listener: (payload: EngineEvents[E]) => void): () => void
  /** Leaves no timer behind; never closes the store. */
  close(): Promise<void>
}

/** @throws InvalidArgumentError naming the option */
export function createEngine(options: EngineOptions): Engine {
  return new EngineCore(options)
}

export const DEFAULT_TIMEOUT_MS = 50
const MAX_TIMEOUT_MS = 60_000

/** The most counters of the local share, which only an outage fills: some 70 MB. */
const MAX_LOCAL_KEYS = 250_000

/** Probing takes the whole way, a write included: a server that only answers TIME is of no use. */
const PROBE: Check = {
  parts: [
    {
      name: 'probe',
      limit: tokenBucket({ limit: 1_000_000, period: '1s' }),
      space: '~:',
      value: 'probe',
      cost: 1,
      onStoreFailure: 'open',
    },
  ],
  peek: false,
}

const channels = {
  decision: channel('headgate:decision'),
  degraded: channel('headgate:degraded'),
  recovered: channel('headgate:recovered'),
  roundTrip: channel('headgate:roundTrip'),
  error: channel('headgate:error'),
}

/** The engine, with the entry that `createLimiter` uses to skip what it has already validated. */
export class EngineCore implements Engine {
  private readonly store: Store
  private readonly timeoutMs: number
  private readonly door: Door | undefined
  /** Decides while a remote store is away. */
  private readonly local = memoryStore({ maxKeys: MAX_LOCAL_KEYS })
  private readonly emitter = new EventEmitter()
  /** Whether anybody listened to decisions: reporting each one has its price. */
  private watched = false
  private unwatch: (() => void) | undefined
  private closed = false

  constructor(options: EngineOptions) {
    refuseUnknown(options, ['store', 'timeoutMs', 'instances'], 'createEngine')
    const { store, timeoutMs = DEFAULT_TIMEOUT_MS, instances = 1 } = options
    if (store?.kind !== 'local' && store?.kind !== 'remote') {
      throw new InvalidArgumentError('store', `${show(store)} is not a store; use memoryStore() or redisStore(client)`)
    }
    if (typeof timeoutMs !== 'number' || !(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS)) {
      throw new InvalidArgumentError(
        'timeoutMs',
        `${show(timeoutMs)} is not a number of ms from 1 to ${MAX_TIMEOUT_MS}`,
      )
    }
    if (!Number.isSafeInteger(instances) || instances < 1 || instances > 100_000) {
      throw new InvalidArgumentError('instances', `${show(instances)} is not an integer from 1 to 100000`)
    }
    this.store = store
    this.timeoutMs = timeoutMs
    this.door = store.kind === 'remote' ? this.openDoor(store, instances) : undefined
  }

  get degraded(): boolean {
    return this.door?.degraded ?? false
  }

  check(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision> {
    return this.checked(items, false, options)
  }

  peek(items: readonly CheckItem[], options?: CheckOptions): Promise<Decision> {
    return this.checked(items, true, options)
  }

  async reset(items: readonly CheckItem[]): Promise<void> {
    await this.resetParts(partsOf(items))
  }

  /** The same for parts that are known to be valid. */
  async resetParts(parts: readonly Part[]): Promise<void> {
    if (this.closed) throw closedError()
    if (this.store.kind === 'local') return this.store.reset(parts)
    try {
      await this.store.reset(parts, performance.now() + this.timeoutMs)
    } catch (error) {
      throw new StoreUnavailableError(`the counters were not reset: ${(error as Error).message}`, { cause: error })
    }
  }

  on<E extends keyof EngineEvents>(event: E, listener: (payload: EngineEvents[E]) => void): () => void {
    if (!Object.hasOwn(channels, event)) {
      throw new InvalidArgumentError('event', `${show(event)} is none of ${Object.keys(channels).join(', ')}`)
    }
    if (typeof listener !== 'function')
      throw new InvalidArgumentError('listener', `${show(listener)} is not a function`)
    const guarded = (payload: EngineEvents[E]) => guard(listener, payload)
    // An EventEmitter would throw on an 'error' that nobody listens to; these are reports, not failures.
    this.emitter.on(`on:${event}`, guarded)
    if (event === 'decision') this.watched = true
    return () => void this.emitter.off(`on:${event}`, guarded)
  }

  async close(): Promise<void> {
    this.closed = true
    this.door?.close()
    this.unwatch?.()
    this.emitter.removeAllListeners()
    await this.local.close()
  }

  /** Judges parts that are known to be valid. */
  run(parts: readonly Part[], peek: boolean, options?: CheckOptions): Promise<Decision> {
    const check: Check = { parts, peek }
    let decided: Promise<Decision>
    try {
      const signal = signalOf(options)
      if (this.closed) throw closedError()
      if (signal?.aborted) throw signal.reason
      decided =
        this.door === undefined
          ? Promise.resolve(deriveDecision(check, (this.store as LocalStore).judge(check), 'store', false))
          : this.door.decide(check, performance.now() + this.timeoutMs, signal)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.watched || channels.decision.hasSubscribers ? this.reported(decided, check) : decided
  }

  private checked(items: readonly CheckItem[], peek: boolean, options?: CheckOptions): Promise<Decision> {
    let parts: Part[]
    try {
      parts = partsOf(items)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.run(parts, peek, options)
  }

  private async reported(decided: Promise<Decision>, { parts, peek }: Check): Promise<Decision> {
    const decision = await decided
    this.report('decision', { decision, items: parts, peek })
    return decision
  }

  private report<E extends keyof EngineEvents>(event: E, payload: EngineEvents[E]): void {
    if (channels[event].hasSubscribers) channels[event].publish(payload)
    this.emitter.emit(`on:${event}`, payload)
  }

  private openDoor(store: RemoteStore, instances: number): Door {
    this.unwatch = store.watch(
      (message, kind, count) => this.report('error', { message, kind, count }),
      (durationMs, checks) => this.report('roundTrip', { durationMs, checks }),
    )
    return new Door({
      store,
      policy: new Policy(this.local, instances),
      timeoutMs: this.timeoutMs,
      probe: PROBE,
      onDegraded: (fault) => this.report('degraded', { reason: fault.message, kind: fault.kind }),
      onRecovered: (awayMs) => this.report('recovered', { awayMs }),
      onFault: (fault, count) => this.report('error', { message: fault.message, kind: fault.kind, count }),
    })
  }
}

/** A listener that throws must not change a decision: its error is nobody's but the process's. */
function guard<P>(listener: (payload: P) => void, payload: P): void {
  try {
    listener(payload)
  } catch (error) {
    process.nextTick(() => {
      throw error
    })
  }
}

function signalOf(options: CheckOptions | undefined): AbortSignal | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError('options', `${show(options)} is not an object; a cost is given as { cost: 5 }`)
  }
  const { signal } = options
  if (signal === undefined || typeof signal?.addEventListener === 'function') return signal
  throw new InvalidArgumentError('signal', `${show(signal)} is not an AbortSignal`)
}

function closedError(): HeadgateError {
  return new HeadgateError('HEADGATE_CLOSED', 'the limiter was closed; make a new one')
}
