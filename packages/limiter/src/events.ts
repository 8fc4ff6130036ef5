import { channel } from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import type { Decision } from './decision.ts'
import { InvalidArgumentError, show } from './errors.ts'
import type { Part } from './store.ts'

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

const channels = {
  decision: channel('headgate:decision'),
  degraded: channel('headgate:degraded'),
  recovered: channel('headgate:recovered'),
  roundTrip: channel('headgate:roundTrip'),
  error: channel('headgate:error'),
}

/** What an engine tells of, to its own listeners and on the diagnostics channels. */
export class Events {
  private readonly emitter = new EventEmitter()
  /** Whether anybody listened to decisions: reporting each one has its price. */
  private watched = false

  get decisionsWanted(): boolean {
    return this.watched || channels.decision.hasSubscribers
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

  report<E extends keyof EngineEvents>(event: E, payload: EngineEvents[E]): void {
    if (channels[event].hasSubscribers) channels[event].publish(payload)
    this.emitter.emit(`on:${event}`, payload)
  }

  close(): void {
    this.emitter.removeAllListeners()
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
