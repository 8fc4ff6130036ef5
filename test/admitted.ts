/** What was admitted, and when: for counting a window naively. */
export class Admitted {
  private readonly charges: { atUs: number; cost: number }[] = []

  add(atUs: number, cost: number): void {
    this.charges.push({ atUs, cost })
  }

  /** Units from `fromUs` up to and with `toUs`. */
  within(fromUs: number, toUs: number): number {
    return this.charges.reduce((sum, { atUs, cost }) => (atUs >= fromUs && atUs <= toUs ? sum + cost : sum), 0)
  }

  /** The latest instant up to `toUs` at which anything was charged; −∞: none. */
  last(toUs: number): number {
    return this.charges.reduce(
      (last, { atUs, cost }) => (cost > 0 && atUs <= toUs && atUs > last ? atUs : last),
      Number.NEGATIVE_INFINITY,
    )
  }
}
