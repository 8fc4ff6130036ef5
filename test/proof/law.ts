import type { Logged } from './fleet.ts'

/**
 * The most that any interval held beyond burst + rate × length, in units; 0 or less: the law holds.
 * Exact: instants are counted from the first one, so that every product stays below 2^53.
 * @param admitted instants in µs, ascending
 */
export function excess(admitted: readonly number[], ratePerSecond: number, burst: number): number {
  const first = admitted[0] ?? 0
  let lowest = Number.POSITIVE_INFINITY
  let most = Number.NEGATIVE_INFINITY
  admitted.forEach((atUs, n) => {
    // The bucket's line: units so far, less what the rate has allowed until now, in millionths of a unit.
    const line = n * 1_000_000 - (atUs - first) * ratePerSecond
    lowest = Math.min(lowest, line)
    most = Math.max(most, line - lowest + 1_000_000)
  })
  return (most - burst * 1_000_000) / 1_000_000
}

export function admittedAt(decisions: readonly Logged[], wanted: (decision: Logged) => boolean): number[] {
  return decisions.filter((decision) => decision.allowed && wanted(decision)).map((decision) => decision.atUs)
}

/** From the first decision to the last, in seconds. */
export function spanOf(decisions: readonly Logged[]): number {
  return ((decisions.at(-1)?.atUs ?? 0) - (decisions[0]?.atUs ?? 0)) / 1_000_000
}
