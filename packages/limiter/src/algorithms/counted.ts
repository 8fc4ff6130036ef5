/** What limits have in common whose view begins with the units in use. `counted.lua` is the twin. */
export abstract class Counted {
  abstract readonly limit: number

  admits(view: readonly number[], at: number, cost: number): boolean {
    return this.limit > 0 && (cost === 0 || (view[at] as number) <= this.limit - cost)
  }

  withhold(view: number[], at: number, units: number): void {
    view[at] = (view[at] as number) + units
  }

  /** As the second integer of the view says. */
  place(view: readonly number[], at: number, nowUs: number, cost: number): number {
    if (this.limit === 0 || cost > this.limit) return -1
    return this.admits(view, at, cost) ? 0 : Math.max(1, (view[at + 1] as number) - nowUs)
  }

  room(view: readonly number[], at: number): number {
    const used = view[at] as number
    return used < this.limit ? this.limit - used : 0
  }
}
