/** What limits have in common whose view begins with the units in use. `counted.lua` is the twin. */
export abstract class Counted {
  abstract readonly limit: number

  admits(view: readonly number[], at: number, cost: number): boolean {
    return this.limit > 0 && (cost === 0 || (view[at] as number) <= this.limit - cost)
  }

  room(view: readonly number[], at: number): number {
    const used = view[at] as number
    return used < this.limit ? this.limit - used : 0
  }
}
