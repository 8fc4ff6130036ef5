import type { StoreFault } from '../store.ts'

export interface BreakerOptions {
  /** Consecutive failures that open it. */
  threshold: number
  /** The wait before the first probe, doubled after each that fails, in ms. */
  firstProbeMs: number
  /** The longest wait between probes, in ms. */
  lastProbeMs: number
  /** Asks the store whether it answers; rejects when it does not. */
  probe(): Promise<void>
  onOpen(reason: StoreFault): void
  onClose(awayMs: number): void
}

/**
 * Opens after a few consecutive failures; while it is open nobody waits for the store. One probe at
 * a time finds out whether it is back.
 */
export class Breaker {
  /** Why it is open; undefined while it is not. */
  reason: StoreFault | undefined
  private readonly options: BreakerOptions
  private failures = 0
  private lastFault: StoreFault | undefined
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
   * @param fault the same object for all that failed together: it counts once
   * @param decisive no further failure is needed to know that the store is away
   */
  failure(fault: StoreFault, decisive: boolean): void {
    if (this.reason !== undefined || this.closed || fault === this.lastFault) return
    this.lastFault = fault
    this.failures += 1
    if (this.failures < this.options.threshold && !decisive) return
    this.reason = fault
    this.openedAtMs = performance.now()
    this.delayMs = this.options.firstProbeMs
    this.schedule()
    this.options.onOpen(fault)
  }

  /** No probe begins any more. */
  close(): void {
    this.closed = true
    clearTimeout(this.timer)
  }

  private schedule(): void {
    this.timer = setTimeout(() => void this.tryAgain(), this.delayMs).unref()
  }

  private async tryAgain(): Promise<void> {
    try {
      await this.options.probe()
    } catch {
      this.delayMs = Math.min(this.delayMs * 2, this.options.lastProbeMs)
      if (!this.closed) this.schedule()
      return
    }
    if (this.closed) return
    this.reason = undefined
    this.lastFault = undefined
    this.failures = 0
    this.options.onClose(performance.now() - this.openedAtMs)
  }
}
