import type { Codec, State } from '../limit.ts'
import { SINCE } from './codes.ts'

/** The instant since which the counters of a limit exist. `since.lua` is its twin. */
export interface SinceState extends State {
  readonly sinceUs: number
}

/** Ten years. */
const LIFETIME_US = 3660 * 86_400_000_000
const SIZE = 9

/** No counter's own state, but read as one (of nothing) where it stands under a counter's key. */
export const sinceCodec: Codec<SinceState> = {
  code: SINCE,

  encode({ sinceUs }) {
    const raw = Buffer.allocUnsafe(SIZE)
    raw.writeUInt8(SINCE, 0)
    raw.writeDoubleBE(sinceUs, 1)
    return raw
  },

  decode(raw) {
    if (raw.length !== SIZE || raw[0] !== SINCE) return undefined
    const sinceUs = raw.readDoubleBE(1)
    return sinceUs >= 0 && Number.isSafeInteger(sinceUs) ? { code: SINCE, sinceUs } : undefined
  },

  used: () => 0,
  roomAfterUs: () => 0,
  ahead: () => false,
  lifetimeUs: () => LIFETIME_US,
  give: () => 0,
}
