import { createHash, createHmac } from 'node:crypto'

/** Values longer than this, in UTF-8 bytes, are hashed. */
export const MAX_VALUE_BYTES = 128

const PLAIN = /^[A-Za-z0-9._@-]*$/

/** A value that is already in the form that keys carry. */
export class EncodedKey {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * The form of a caller's value inside a key: bytes of its UTF-8 text outside `A-Za-z0-9._@-` become
 * `%XX`; a value over 128 bytes, or with a lone surrogate, becomes `~` and a hash. Different values
 * give different texts; no text holds `:`, `{`, `}` or starts like Headgate's own keys.
 */
export function encodeValue(value: string, secret?: string): string {
  if (value.length <= MAX_VALUE_BYTES && PLAIN.test(value)) return value
  return value.length <= MAX_VALUE_BYTES && value.isWellFormed() ? percent(value, secret) : hashValue(value, secret)
}

function percent(value: string, secret?: string): string {
  let text = ''
  let plainFrom = 0
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if (code > 0x7f) return percentBytes(value, secret)
    const escaped = ESCAPED[code] as string
    if (escaped.length === 1) continue
    text += value.slice(plainFrom, i) + escaped
    plainFrom = i + 1
  }
  return text + value.slice(plainFrom)
}

function percentBytes(value: string, secret?: string): string {
  const bytes = Buffer.from(value, 'utf8')
  if (bytes.length > MAX_VALUE_BYTES) return hashValue(value, secret)
  let text = ''
  for (const byte of bytes) text += ESCAPED[byte]
  return text
}

/** By byte: itself where it is plain, else `%XX`. */
const ESCAPED = Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte)
  return PLAIN.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
})

/**
 * A value hidden: `~` and 43 characters of base64url, the SHA-256 of its text, or the HMAC-SHA-256
 * under `secret`. A text that is not well-formed Unicode is hashed by its UTF-16 code units behind a
 * byte that UTF-8 never holds, so that two of them never meet as U+FFFD.
 */
export function hashValue(value: string, secret?: string): string {
  const hash = secret ? createHmac('sha256', secret) : createHash('sha256')
  if (value.isWellFormed()) hash.update(value, 'utf8')
  else hash.update(Buffer.of(0xff)).update(value, 'utf16le')
  return `~${hash.digest('base64url')}`
}

/** Several values as one composite value: each encoded, joined with `:`, which no encoded value holds. */
export function encodeParts(values: readonly string[], secret?: string): string {
  return values.map((value) => encodeValue(value, secret)).join(':')
}

/** Names of rules, limits, limiters and dimensions. */
export const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
