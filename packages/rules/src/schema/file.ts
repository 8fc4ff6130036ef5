import { z } from 'zod'
import { checkStore, STORE_HINT } from '../store-url.ts'
import { dimensions } from './dimension.ts'
import { admin, gateway } from './gateway.ts'
import { integer, section, text } from './notes.ts'
import { headers, modes, onStoreFailure, rule } from './rule.ts'
import { duration } from './values.ts'

const PREFIX = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** The rule file; validation, types and the published JSON Schema come from here. */
export const fileSchema = section(
  {
    store: text(
      {
        description: 'Where counters live: memory, redis://…, rediss://…, redis+sentinel://… or redis+cluster://…',
        write: STORE_HINT,
        default: 'memory',
      },
      checkStore,
    ).optional(),
    prefix: text(
      {
        description: 'Every key in the store begins with it and a colon.',
        write: 'a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -',
        pattern: PREFIX.source,
        default: 'rate_limit',
      },
      (value) =>
        PREFIX.test(value)
          ? undefined
          : '{} is not a prefix; write a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -',
    ).optional(),
    timeout: duration('How long a decision may wait for the store.', '50ms', { most: '1m' }).optional(),
    instances: integer(
      'How many processes enforce these rules: each takes its share while the store is away.',
      1,
      100_000,
      1,
    ).optional(),
    keySecret: text({
      description: 'Secret of the HMAC that hides values in keys; without it a plain hash.',
      write: 'a text such as "${KEY_SECRET:-}"',
    }).optional(),
    gateway: gateway.optional(),
    admin: admin.optional(),
    dimensions: dimensions.optional(),
    defaults: section(
      { onStoreFailure: onStoreFailure.optional(), mode: modes.optional(), headers: headers.optional() },
      'For rules that do not say it themselves.',
    ).optional(),
    rules: z.array(rule).meta({ description: 'Every matching rule applies; deny beats allow beats limits.' }),
  },
  "Headgate's rule file.",
  ['slotBy', 'rulesFrom', 'decide', 'log', 'jwt'],
)

export type FileInput = z.output<typeof fileSchema>
