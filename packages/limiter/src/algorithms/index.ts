import type { Codec, State } from '../limit.ts'
import { concurrencyCodec } from './concurrency/index.ts'
import { fixedWindowCodec } from './fixed-window/index.ts'
import { leakyBucketCodec } from './leaky-bucket/index.ts'
import { sinceCodec } from './since.ts'
import { slidingLogCodec } from './sliding-log/index.ts'
import { slidingWindowCodec } from './sliding-window/index.ts'
import { tokenBucketCodec } from './token-bucket/index.ts'

/** All algorithms by the code that their stored states begin with. */
const codecs: readonly Codec[] = [
  tokenBucketCodec,
  fixedWindowCodec,
  leakyBucketCodec,
  slidingWindowCodec as Codec,
  slidingLogCodec as Codec,
  concurrencyCodec as Codec,
  sinceCodec,
]

/** By code; codes are small integers. */
const byCode: (Codec | undefined)[] = []
for (const codec of codecs) byCode[codec.code] = codec

/** How states of this code are read. */
export function codecOf(state: State): Codec {
  return byCode[state.code] as Codec
}

/** Reads what is stored under a key; undefined: garbage. */
export function decodeState(raw: Buffer): State | undefined {
  return byCode[raw[0] ?? 0]?.decode(raw)
}

/** What is stored for a state. */
export function encodeState(state: State): Buffer {
  return codecOf(state).encode(state)
}
