import { type Field, RATE_LIMIT_FIELDS } from 'headgate/http'
import { FieldTable, HOP_BY_HOP, namedByConnection, withoutFields } from '../field-table.ts'

const PASS = 0
const DROP = 1
const CONNECTION = 2
const CONTENT_LENGTH = 3
const TRANSFER_ENCODING = 4
const RATE_LIMIT = 5

type Kind = 0 | 1 | 2 | 3 | 4 | 5

const KINDS: Record<string, Kind> = {
  connection: CONNECTION,
  'content-length': CONTENT_LENGTH,
  'transfer-encoding': TRANSFER_ENCODING,
}

/** The draft's earlier fields say the same in other words. */
const RATE_LIMITS = new Set([...RATE_LIMIT_FIELDS, 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'])

const table = new FieldTable<Kind>((name) => {
  const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined
  if (kind !== undefined) return kind
  if (RATE_LIMITS.has(name)) return RATE_LIMIT
  return HOP_BY_HOP.has(name) ? DROP : PASS
})

/** What an answer is sent with: its fields, names and values in turns, and its length where it is known. */
export interface AnswerFields {
  readonly fields: string[]
  readonly length: number | undefined
  /** The body has a coding other than chunked alone, which would be lost on the way. */
  readonly coded: boolean
}

/**
 * The fields of an upstream's answer as the client gets them: without those that were between the
 * gateway and the upstream, and with ours, which replace the upstream's own where there are any.
 */
export function answerFields(
  raw: readonly Buffer[],
  status: number,
  ours: readonly Field[],
  closing: boolean,
): AnswerFields {
  const fields: string[] = []
  let connection: string | undefined
  let length: string | undefined
  let chunked = false
  let coded = false
  for (let i = 0; i < raw.length; i += 2) {
    const name = text(raw[i] as Buffer)
    const kind = table.kindOf(name)
    if (kind === PASS || (kind === RATE_LIMIT && ours.length === 0)) fields.push(name, text(raw[i + 1] as Buffer))
    else if (kind === CONNECTION) connection = connection ? `${connection},${raw[i + 1]}` : text(raw[i + 1] as Buffer)
    else if (kind === CONTENT_LENGTH) length = text(raw[i + 1] as Buffer)
    else if (kind === TRANSFER_ENCODING) {
      coded ||= chunked || text(raw[i + 1] as Buffer).toLowerCase() !== 'chunked'
      chunked = true
    }
  }
  const named = connection === undefined ? undefined : namedByConnection(connection)
  if (named) withoutFields(fields, named)
  for (const [name, value] of ours) fields.push(name, value)
  if (closing) fields.push('Connection', 'close')
  // There is none with a 204 (RFC 9110, 8.6), and a client might wait for the body that it announces.
  if (length === undefined || chunked || status === 204) return { fields, length: undefined, coded }
  // Last: node decodes a Content-Disposition that follows a Content-Length, and would change its bytes.
  fields.push('Content-Length', length)
  return { fields, length: Number(length), coded }
}

function text(bytes: Buffer): string {
  return bytes.toString('latin1')
}
