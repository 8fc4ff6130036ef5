/** The server's clock as last seen: an instant of its own, and when it arrived here. */
export class ServerClock {
  private seenUs = 0
  private arrivedMs = 0

  see(nowUs: number): void {
    this.seenUs = nowUs
    this.arrivedMs = performance.now()
  }

  /**
   * The server's instant, in µs, at the instant `ms` of `performance.now()`. Since what was seen was
   * on its way for a while, this is never later than the truth: a mark made from it errs to early.
   */
  at(ms: number): number {
    return Math.floor(this.seenUs + (ms - this.arrivedMs) * 1000)
  }
}
