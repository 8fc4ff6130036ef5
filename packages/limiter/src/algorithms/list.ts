/** Lists in ascending order. `list.lua` is the twin, on entries packed into one string. */

/** How many of the numbers, which never fall, are at most `most`. */
export function countUntil(ascending: readonly number[], most: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] as number) <= most) low = middle + 1
    else high = middle
  }
  return low
}
