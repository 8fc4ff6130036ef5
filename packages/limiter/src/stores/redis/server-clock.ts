/**
 * The server's clock, as well as answers tell it. The server read its clock between the instant at which
 * it was asked and the one at which the answer was read here; of all answers, the quickest knows best, and
 * one that lay in the socket while this process was busy takes nothing away.
 */
export class ServerClock {
  /** The server's µs less our own. */
  private offsetUs = Number.NEGATIVE_INFINITY

  /** @param sentMs when it was asked, on `performance.now()` */
  see(nowUs: number, sentMs: number): void {
    const least = nowUs - performance.now() * 1000
    const most = nowUs - sentMs * 1000
    // Beyond what this answer allows the clock was stepped, or drifted.
    this.offsetUs = Math.min(Math.max(this.offsetUs, least), most)
  }

  /** The server's instant, in µs, at the instant `ms` of `performance.now()`; it errs to early, by a round trip at most. */
  at(ms: number): number {
    return Math.floor(this.offsetUs + ms * 1000)
  }
}
