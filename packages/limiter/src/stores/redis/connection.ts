/**
 * One client object and its one connection: it is made once and ends once. Whatever a client does about
 * commands when it reconnects (send them again, queue them, forget their callers) therefore never happens.
 */
export interface Link {
  /** Sends a command at once. Rejects when it cannot be written, or when the link ends first. */
  send(args: readonly string[]): Promise<unknown>
  /** What `write` sends leaves in one write. Absent: it does so by itself. */
  together?(write: () => void): void
  /** Ends it; what is still waited for is rejected. Resolves when its socket is gone. */
  end(): Promise<void>
}

export interface LinkEvents {
  /** The connection is there, and whoever has to log in has. */
  onReady(): void
  /** It could not be made, or is gone; `error` where the client knows why. */
  onEnd(error: Error | undefined): void
}

/** Begins a link; its events come later, never within the call. */
export type OpenLink = (events: LinkEvents, connectTimeoutMs: number) => Link

export interface ConnectionEvents {
  /** What has to be done on a new link before it is of use. */
  prepare(send: Link['send']): Promise<void>
  onReady(): void
  /** Once for each link that ends; a new one follows by itself. */
  onDown(error: Error | undefined): void
}

/** A link that lived as long as this ended for a new reason: the next attempts begin without delay, in ms. */
const SETTLED_MS = 1000

/** Keeps one link to a server alive, a new one after the other. */
export class Connection {
  private readonly open: OpenLink
  private readonly events: ConnectionEvents
  private link: Link | undefined
  /** Links begun since one lasted. */
  private attempts = 0
  private readyAtMs = Number.POSITIVE_INFINITY
  /** Of the attempt that is under way, or of the wait before the next. */
  private timer: NodeJS.Timeout | undefined

  constructor(open: OpenLink, events: ConnectionEvents) {
    this.open = open
    this.events = events
    this.connect()
  }

  send(args: readonly string[]): Promise<unknown> {
    return this.link === undefined ? Promise.reject(new Error('the connection is gone')) : this.link.send(args)
  }

  /** What `write` sends leaves in one write. */
  together(write: () => void): void {
    if (this.link?.together === undefined) write()
    else this.link.together(write)
  }

  /** Gives the present link up for a new one. */
  renew(why: Error): void {
    if (this.link !== undefined) this.ended(this.link, why)
  }

  /** Resolves when nothing is left of it. */
  async close(): Promise<void> {
    clearTimeout(this.timer)
    const link = this.link
    this.link = undefined
    await link?.end()
  }

  private connect(): void {
    this.attempts += 1
    const limitMs = attemptLimitMs(this.attempts)
    const link: Link = opened(
      this.open,
      { onReady: () => this.prepare(link), onEnd: (error) => this.ended(link, error) },
      limitMs,
    )
    this.link = link
    const late = () => this.ended(link, new Error(`no connection within ${limitMs} ms`))
    this.timer = setTimeout(late, limitMs).unref()
  }

  private prepare(link: Link): void {
    if (link !== this.link) return
    this.events
      .prepare((args) => link.send(args))
      .then(
        () => {
          if (link !== this.link) return
          clearTimeout(this.timer)
          this.readyAtMs = performance.now()
          this.events.onReady()
        },
        (error: unknown) => this.ended(link, error as Error),
      )
  }

  /** Only the present link has a say: one that was given up ends in its own time. */
  private ended(link: Link, error: Error | undefined): void {
    if (link !== this.link) return
    this.link = undefined
    clearTimeout(this.timer)
    if (performance.now() - this.readyAtMs > SETTLED_MS) this.attempts = 0
    this.readyAtMs = Number.POSITIVE_INFINITY
    this.timer = setTimeout(() => this.connect(), pauseMs(this.attempts)).unref()
    link.end().catch(() => undefined)
    this.events.onDown(error)
  }
}

/** A client that cannot even make another of its kind: a link that ends, as any that could not be made. */
function opened(open: OpenLink, events: LinkEvents, limitMs: number): Link {
  try {
    return open(events, limitMs)
  } catch (error) {
    queueMicrotask(() => events.onEnd(error as Error))
    return { send: () => Promise.reject(error), end: async () => undefined }
  }
}

/** The pause after the nth attempt, in ms: 25 to 200, up to a half less so that instances do not come in step. */
function pauseMs(attempts: number): number {
  return 25 * 2 ** Math.min(attempts, 3) * (1 - Math.random() / 2)
}

/**
 * How long an attempt may take, with all of its handshake, in ms. Short, so that the first after a network is
 * back finds it soon; now and then long, for networks where a name or a handshake takes its time.
 */
function attemptLimitMs(attempts: number): number {
  return attempts % 8 === 0 ? 6000 : 1000
}
