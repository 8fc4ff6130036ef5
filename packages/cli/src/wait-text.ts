const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
]

/** A wait for people, rounded up and with at most two units: `180ms`, `1.5s`, `2m 5s`, `3h`, `never`. */
export function waitText(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return 'never'
  if (Math.ceil(ms) < 1000) return `${Math.ceil(ms)}ms`
  if (Math.ceil(ms / 100) < 600) return `${Math.ceil(ms / 100) / 10}s`
  const whole = Math.ceil(ms / 1000) * 1000
  const at = UNITS.findIndex(([, unitMs]) => whole >= unitMs)
  const [name, unitMs] = UNITS[at] as [string, number]
  const [nextName, nextMs] = UNITS[at + 1] as [string, number]
  // Rounded to the smaller of the two units, so that nothing is left over after it.
  const rounded = Math.ceil(whole / nextMs) * nextMs
  const rest = (rounded % unitMs) / nextMs
  const first = `${Math.floor(rounded / unitMs)}${name}`
  return rest === 0 ? first : `${first} ${rest}${nextName}`
}
