import type { ChangeListener } from '../../store.ts'

export interface SubscriptionEvents {
  onMessage(text: string): void
  /** From now on every message is heard. */
  onLive(): void
  /** Messages may have been missed; `error` where the client knows why. */
  onLost(error: Error | undefined): void
}

/** A connection that listens to one channel and comes back by itself. */
export interface Subscription {
  /** Resolves when nothing is left of it. */
  end(): Promise<void>
}

/** Begins to listen; its events come later, never within the call. */
export type Subscribe = (channel: string, events: SubscriptionEvents) => Subscription

/**
 * What the script tells of: keys on which a refusal may no longer hold. The subscription is made when somebody wants to
 * know, and serves all of them.
 */
export class Announcements {
  readonly channel: string
  private readonly prefix: string
  private readonly subscribe: Subscribe | undefined
  private readonly warn: (message: string) => void
  private readonly listeners = new Set<ChangeListener>()
  private subscription: Subscription | undefined
  private live = false
  private warned = false

  /** @param prefix what begins every key, with its colon */
  constructor(prefix: string, subscribe: Subscribe | undefined, warn: (message: string) => void) {
    this.prefix = prefix
    this.channel = `${prefix}~:changes`
    this.subscribe = subscribe
    this.warn = warn
  }

  watch(listener: ChangeListener): () => void {
    this.listeners.add(listener)
    listener.onLive(this.live)
    this.subscription ??= this.subscribe?.(this.channel, {
      onMessage: (text) => this.told(text),
      onLive: () => this.turn(true),
      onLost: (error) => this.lost(error),
    })
    return () => void this.listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.turn(false)
    this.listeners.clear()
    await this.subscription?.end()
  }

  private told(text: string): void {
    if (!text.startsWith(this.prefix)) return
    const key = text.slice(this.prefix.length)
    for (const { onChange } of this.listeners) onChange(key)
  }

  private turn(live: boolean): void {
    if (live) this.warned = false
    if (live === this.live) return
    this.live = live
    for (const { onLive } of this.listeners) onLive(live)
  }

  private lost(error: Error | undefined): void {
    this.turn(false)
    if (this.warned || error === undefined) return
    this.warned = true
    this.warn(`no subscription to ${this.channel}: refusals are repeated for 1 s at most: ${error.message}`)
  }
}
