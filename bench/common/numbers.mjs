/** The middle one, or the mean of the two in the middle. */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** @returns {{ median: number, min: number, max: number }} */
export function spread(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/** The value below which the given share of the values lies. */
export function percentile(values, share) {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]
}
