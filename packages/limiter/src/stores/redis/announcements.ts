import { randomUUID } from 'node:crypto'
import type { ChangeListener } from '../../store.ts'
import { warnOnce } from './warn-once.ts'

export interface SubscriptionEvents {
  onMessage(text: string): void
  /** From now on every message is heard. */
  onLive(): void
  /** Messages may have been missed; `error` where the client knows why. */
  onLost(error: Error | undefined): void
}

/** A connection that listens to one channel; one of the store's own ends when it is lost. */
export interface Subscription {
  /** Resolves when nothing is left of it. */
  end(): Promise<void>
}

/** Begins to listen; its events come later, never within the call. */
export type Subscribe = (channel: string, events: SubscriptionEvents) => Subscription

/** @param prefix what begins every key, with its colon */
export function channelOf(prefix: string): string {
  return `${prefix}~:changes`
}

/** What stands before a key whose leases are to be given back. */
const RECALL = '!'

/** How many attempts may fail in a row before it is told: a server that ends takes this connection first. */
const DOUBTFUL = 3

/** How long it may take until a subscription hears what is published, in ms. */
const LISTEN_MS = 3000

/** The pause before the nth attempt to listen again, in ms. */
function pauseMs(attempts: number): number {
  return Math.min(2000, 50 * 2 ** attempts)
}

/** What the store does for those who listen. */
export interface Speaker {
  /** Publishes on the channel as the script does, on a server that counts. */
  say(text: string): Promise<unknown>
  warn(message: string): void
}

/**
 * What the script tells of: keys on which a refusal, or a lease, may no longer hold. The subscription is made when somebody wants to
 * know, anew with each link to the server, and serves all of them.
 */
export class Announcements {
  readonly channel: string
  private readonly prefix: string
  private readonly subscribe: Subscribe | undefined
  private readonly speaker: Speaker
  private readonly listeners = new Set<ChangeListener>()
  private readonly ending = new Set<Promise<void>>()
  private subscription: Subscription | undefined
  /** Whether the server can be reached. */
  private up = false
  private live = false
  private attempts = 0
  /** Whether it was told that nothing is heard. */
  private doubted = false
  /** Of the pause before the next attempt, or of the wait for the word. */
  private timer: NodeJS.Timeout | undefined
  /** What is said to oneself when one begins to listen. */
  private word = ''

  /**
   * @param prefix what begins every key, with its colon
   * @param subscribe absent where the client has no way to listen
   */
  constructor(prefix: string, subscribe: Subscribe | undefined, speaker: Speaker) {
    this.prefix = prefix
    this.channel = channelOf(prefix)
    this.subscribe = subscribe
    this.speaker = speaker
  }

  watch(listener: ChangeListener): () => void {
    this.listeners.add(listener)
    listener.onLive(this.live)
    this.begin()
    return () => void this.listeners.delete(listener)
  }

  /** The server can be reached, or another one at its address. */
  onReady(): void {
    this.up = true
    this.attempts = 0
    this.begin()
  }

  /** What is said from now on may be said elsewhere. */
  onDown(): void {
    this.up = false
    this.drop()
  }

  async close(): Promise<void> {
    this.onDown()
    this.listeners.clear()
    await Promise.all(this.ending)
  }

  private begin(): void {
    if (!this.up || this.listeners.size === 0 || this.subscription !== undefined || this.timer !== undefined) return
    if (this.subscribe === undefined) {
      warnOnce('HEADGATE_NO_SUBSCRIPTION', this.voidPromise('this client cannot listen'))
      return
    }
    try {
      const own = this.subscribe(this.channel, {
        onMessage: (text) => {
          if (text !== this.word) this.told(text)
          else if (own === this.subscription) this.turn(true)
        },
        onLive: () => {
          if (own === this.subscription) this.prove(own)
        },
        onLost: (error) => {
          if (own === this.subscription) this.lost(error)
        },
      })
      this.subscription = own
      const unheard = new Error(`what is published where counters are kept is not heard within ${LISTEN_MS} ms`)
      this.timer = setTimeout(() => this.lost(unheard), LISTEN_MS).unref()
    } catch (error) {
      this.lost(error as Error)
    }
  }

  /** Whoever hears its own word hears the script too: both rights are there, and it is the same server. */
  private prove(own: Subscription): void {
    this.word = randomUUID()
    this.speaker.say(this.word).catch((error: Error) => {
      if (own === this.subscription) this.lost(error)
    })
  }

  private drop(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.turn(false)
    const { subscription } = this
    this.subscription = undefined
    if (subscription === undefined) return
    const ending = subscription.end().catch(() => undefined)
    this.ending.add(ending)
    void ending.then(() => this.ending.delete(ending))
  }

  private lost(error: Error | undefined): void {
    this.drop()
    if (!this.up) return
    this.timer = setTimeout(
      () => {
        this.timer = undefined
        this.begin()
      },
      pauseMs(this.attempts++),
    ).unref()
    if (this.attempts < DOUBTFUL || this.doubted) return
    this.doubted = true
    const problem = this.voidPromise(error?.message ?? 'it ended')
    this.speaker.warn(problem)
    warnOnce('HEADGATE_NO_SUBSCRIPTION', problem)
  }

  private voidPromise(why: string): string {
    return `no subscription to ${this.channel} (${why}): refusals are repeated for 1 s at most, and what gives units back elsewhere is seen that late; allow SUBSCRIBE and PUBLISH on it, give a client as \`subscriber\`, or set \`denyCache: false\``
  }

  private told(text: string): void {
    const recalled = text.startsWith(RECALL + this.prefix)
    if (!recalled && !text.startsWith(this.prefix)) return
    // In a cluster a tag comes next; no rule begins like one.
    const key = text.slice(this.prefix.length + (recalled ? RECALL.length : 0)).replace(/^\{[^}]*\}:/, '')
    for (const { onChange } of this.listeners) onChange(key, recalled)
  }

  private turn(live: boolean): void {
    if (live) {
      clearTimeout(this.timer)
      this.timer = undefined
      this.attempts = 0
      this.doubted = false
    }
    if (live === this.live) return
    this.live = live
    for (const { onLive } of this.listeners) onLive(live)
  }
}
