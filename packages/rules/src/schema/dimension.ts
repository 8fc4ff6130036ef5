import { z } from 'zod'
import { flag, integer, section, word } from './notes.ts'
import { anyText, checkName, fieldName } from './values.ts'

export const BUILT_IN = ['global', 'ip', 'method', 'host', 'route'] as const

const dimension = section(
  {
    header: fieldName('Counted by the value of this field.').optional(),
    cookie: anyText({ description: 'Counted by the value of this cookie.', write: "a cookie's name" }).optional(),
    query: anyText({
      description: 'Counted by the value of this query parameter.',
      write: "a parameter's name",
    }).optional(),
    path: anyText({
      description: "Counted by this :parameter of the rule's patterns.",
      write: "a parameter's name without the colon",
    }).optional(),
    address: section(
      {
        v4: integer('Bits of an IPv4 address that count.', 0, 32, 32).optional(),
        v6: integer('Bits of an IPv6 address that count.', 0, 128, 64).optional(),
      },
      "Counted by the network of the caller's address.",
    ).optional(),
    missing: word(
      ['ip', 'skip', 'deny'],
      'Without a value: count by address in a room of its own, drop the limit, or 400.',
      {
        default: 'ip',
      },
    ).optional(),
    secret: flag('Keys hold only a hash of the value.', false).optional(),
    normalize: word(['email'], 'email: trim, lower case, Unicode NFC.').optional(),
  },
  'What is counted by: exactly one of header, cookie, query, path and address.',
  ['jwt'],
)

function dimensionKey(context: z.core.ParsePayload<string>): void {
  const message = checkName(context.value)
  if (message !== undefined) context.issues.push({ code: 'custom', input: context.value, message })
}

export const dimensions = z
  .record(z.string().check(dimensionKey), dimension)
  .meta({ description: 'What limits can count by, beside global, ip, method, host and route.' })
