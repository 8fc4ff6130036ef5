import { InvalidArgumentError, show } from '../../errors.ts'

const SECOND_MS = 1000
const HOUR_MS = 3_600_000
/** No clock is further ahead of UTC; and how far apart offsets are read, which is less than two changes lie apart. */
const FARTHEST_MS = 16 * HOUR_MS
const STEP_MS = 3 * HOUR_MS

/** The clocks of a time zone. A wall time is the ms since 1970 that a clock in UTC would show the same at. */
export class Zone {
  /** As this Node.js writes it: `asia/shanghai` is `Asia/Shanghai`. */
  readonly name: string
  private readonly format: Intl.DateTimeFormat

  constructor(format: Intl.DateTimeFormat) {
    this.format = format
    this.name = format.resolvedOptions().timeZone
  }

  /** How far its clocks are ahead of UTC at an instant (ms since 1970). */
  offsetMs(ms: number): number {
    if (this.name === 'UTC') return 0
    const read: Record<string, number> = {}
    for (const { type, value } of this.format.formatToParts(ms)) read[type] = Number(value)
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = read
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / SECOND_MS) * SECOND_MS
  }

  /** The first instant at which its clocks show this wall time or a later one: also where they skip it or show it twice. */
  firstAt(wallMs: number): number {
    let fromMs = wallMs - FARTHEST_MS
    let offsetMs = this.offsetMs(fromMs)
    for (;;) {
      const toMs = fromMs + STEP_MS
      const nextMs = this.offsetMs(toMs)
      const changeMs = nextMs === offsetMs ? toMs : this.changeMs(fromMs, toMs)
      if (wallMs - offsetMs < changeMs) return Math.max(fromMs, wallMs - offsetMs)
      if (wallMs - nextMs < toMs) return Math.max(changeMs, wallMs - nextMs)
      fromMs = toMs
      offsetMs = nextMs
    }
  }

  /** Between two instants (whole seconds) of other offsets, the first of the later one's. */
  changeMs(fromMs: number, toMs: number): number {
    const beforeMs = this.offsetMs(fromMs)
    let low = fromMs / SECOND_MS
    let high = toMs / SECOND_MS
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.offsetMs(middle * SECOND_MS) === beforeMs) low = middle
      else high = middle
    }
    return high * SECOND_MS
  }
}

/** By their names in lower case; there are as many as the zone data knows. Making one costs more than using it. */
const zones = new Map<string, Zone>()

/** @throws InvalidArgumentError for what is no zone of this Node.js's data */
export function zoneOf(timeZone: unknown): Zone {
  const known = typeof timeZone === 'string' ? zones.get(timeZone.toLowerCase()) : undefined
  if (known !== undefined) return known
  // Offsets are known to some versions of Node.js only.
  const format = typeof timeZone === 'string' && /^[A-Za-z]/.test(timeZone) ? formatOf(timeZone) : undefined
  if (format === undefined) {
    throw new InvalidArgumentError(
      'timeZone',
      `${show(timeZone)} is no time zone that is known here; write an IANA name such as 'UTC' or 'Asia/Shanghai'`,
    )
  }
  const zone = new Zone(format)
  zones.set((timeZone as string).toLowerCase(), zone)
  return zone
}

function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  const two = '2-digit'
  try {
    return new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: two,
      day: two,
      hour: two,
      minute: two,
      second: two,
    })
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
