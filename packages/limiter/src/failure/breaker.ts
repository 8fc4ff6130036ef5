export interface BreakerOptions {
  /** Consecutive failures that open it. */
  threshold: number
  /** The wait before the first probe, doubled after each that fails, in ms. */
  firstProbeMs: number
  /** The longest wait between probes, in ms. */
  lastProbeMs: number
  /** Asks the store whether it answers; rejects when it does not. */
  probe(): Promise<void>
  onOpen(reason: unknown): void
  onClose(awayMs: number): void
}

/**
 * Opens after a few consecutive failures; while it is open nobody waits for the store. One probe at
 * a time finds out whether it is back.
 */
export class Breaker {
  open = false
  private readonly options: BreakerOptions
  private failures = 0
  private lastReason: unknown
  private openedAtMs = 0
  private delayMs = 0
  private timer: NodeJS.Timeout | undefined
  private closed = false

  constructor(options: BreakerOptions) {
    this.options = options
  }

  success(): void {
    this.failures = 0
  }

  /**
   * @param reason the same object for all that failed together: it counts once
   * @param decisive no further failure is needed to know that the store is away
   */
  failure(reason: unknown, decisive: boolean): void {
    if (this.open || this.closed || reason === this.lastReason) return
    this.lastReason = reason
    this.failures += 1
    if (this.failures < this.options.threshold && !decisive) return
    this.open = true
    this.openedAtMs = performance.now()
    this.delayMs = this.options.firstProbeMs
    this.options.onOpen(reason)
    this.schedule()
  }

  close(): void {
    this.closed = true
    clearTimeout(this.timer)
  }

  private schedule(): void {
    if (this.closed) return
    this.timer = setTimeout(() => void this.tryAgain(), this.delayMs).unref()
  }

  private async tryAgain(): Promise<void> {
    try {
      await this.options.probe()
    } catch {
      this.delayMs = Math.min(this.delayMs * 2, this.options.lastProbeMs)
      this.schedule()
      return
    }
    if (this.closed) return
    this.open = false
    this.failures = 0
    this.lastReason = undefined
    this.options.onClose(performance.now() - this.openedAtMs)
  }
}
