import type { StoreErrorKind, StoreFault } from '../store.ts'

/** The least time between two rounds of reports, in ms. */
const ROUND_MS = 1000

/**
 * Gathers faults, so that a store in trouble is reported once a second for each kind of trouble, never
 * once a request.
 */
export class Reports {
  private readonly report: (fault: StoreFault, decisions: number) => void
  private readonly kinds = new Map<StoreErrorKind, { readonly fault: StoreFault; decisions: number }>()
  private lastRoundMs = Number.NEGATIVE_INFINITY
  private timer: NodeJS.Timeout | undefined

  /** @param report is called with the first fault of a kind, and how many decisions the kind touched */
  constructor(report: (fault: StoreFault, decisions: number) => void) {
    this.report = report
  }

  add(fault: StoreFault, decisions: number): void {
    const held = this.kinds.get(fault.kind)
    if (held === undefined) this.kinds.set(fault.kind, { fault, decisions })
    else held.decisions += decisions
    this.timer ??= setTimeout(() => this.round(), Math.max(1, this.lastRoundMs + ROUND_MS - performance.now())).unref()
  }

  /** What is held is reported now. */
  close(): void {
    this.round()
  }

  private round(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.lastRoundMs = performance.now()
    const held = [...this.kinds.values()]
    this.kinds.clear()
    for (const { fault, decisions } of held) this.report(fault, decisions)
  }
}
