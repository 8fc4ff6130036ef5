/** Something that must end by an instant. Instants are on `performance.now()`. */
export interface Due {
  readonly deadlineMs: number
  previous: Due | undefined
  next: Due | undefined
}

/** How late the timer may fire before the process, not the store, is held to be slow, in ms. */
const LATE_MS = 10

/**
 * What is waiting, in the order of its deadlines, behind one timer. A constant time-out adds entries in that order, so
 * that adding is O(1) as removing is; one that comes with an earlier deadline finds its place from the end.
 */
export class Deadlines<D extends Due> {
  private first: D | undefined
  private last: D | undefined
  private timer: NodeJS.Timeout | undefined
  private readonly expire: (due: D[], late: boolean) => void

  /** @param expire receives what is over; `late`: this process was busy, so nobody else is to blame */
  constructor(expire: (due: D[], late: boolean) => void) {
    this.expire = expire
  }

  add(due: D): void {
    let previous = this.last
    while (previous !== undefined && previous.deadlineMs > due.deadlineMs) previous = previous.previous as D | undefined
    const next = previous === undefined ? this.first : (previous.next as D | undefined)
    due.previous = previous
    due.next = next
    if (previous === undefined) this.first = due
    else previous.next = due
    if (next === undefined) this.last = due
    else next.previous = due
    if (previous === undefined && next !== undefined) {
      clearTimeout(this.timer)
      this.timer = undefined
    }
    this.timer ??= this.arm(due.deadlineMs - performance.now())
  }

  remove(due: D): void {
    const previous = due.previous as D | undefined
    const next = due.next as D | undefined
    if (previous === undefined) this.first = next
    else previous.next = next
    if (next === undefined) this.last = previous
    else next.previous = previous
    due.previous = undefined
    due.next = undefined
  }

  /** Ends the timer. @returns what still waits */
  close(): D[] {
    clearTimeout(this.timer)
    this.timer = undefined
    return this.takeUntil(Number.POSITIVE_INFINITY)
  }

  /** The timer keeps no process alive: whoever waits for a store holds a socket that does. */
  private arm(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => this.fire(), Math.max(1, Math.ceil(delayMs))).unref()
  }

  private fire(): void {
    const head = this.first
    const nowMs = performance.now()
    if (head !== undefined && head.deadlineMs <= nowMs) {
      // Timers run before sockets are read: an answer that already lies there is taken first.
      setImmediate(() => this.sweep(nowMs, nowMs - head.deadlineMs > LATE_MS))
    }
    this.timer = undefined
    if (head !== undefined) this.timer = this.arm(head.deadlineMs - nowMs)
  }

  private sweep(nowMs: number, late: boolean): void {
    const due = this.takeUntil(nowMs)
    if (due.length > 0) this.expire(due, late)
  }

  private takeUntil(ms: number): D[] {
    const due: D[] = []
    while (this.first !== undefined && this.first.deadlineMs <= ms) {
      due.push(this.first)
      this.remove(this.first)
    }
    return due
  }
}
