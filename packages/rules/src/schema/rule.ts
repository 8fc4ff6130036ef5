import { z } from 'zod'
import { flag, integer, oneOrMany, section, text, word } from './notes.ts'
import { checkField, duration, name, network, prose, rateOrCount, timeZone } from './values.ts'

export const MAX_UNITS = Number.MAX_SAFE_INTEGER

const path = text(
  {
    description: 'Path pattern: `:name` is one segment, a final `/*` is the path before it and everything below.',
    write: 'a path such as /api/login, /users/:id or /api/*',
    pattern: '^/',
    examples: ['/api/login', '/users/:id', '/api/*'],
  },
  (value) =>
    value.startsWith('/') ? undefined : '{} is not a path; write one that begins with /, such as /api/login or /api/*',
)

const METHOD = /^[A-Z][A-Z0-9_-]*$/
/** Those that the HTTP parsers of Node 20 and later read; a request with any other never gets so far. */
const METHODS = (
  'GET HEAD POST PUT PATCH DELETE OPTIONS QUERY TRACE CONNECT ACL BIND CHECKOUT COPY LINK LOCK M-SEARCH MERGE ' +
  'MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY PROPFIND PROPPATCH PURGE REBIND REPORT SEARCH SOURCE SUBSCRIBE UNBIND ' +
  'UNLINK UNLOCK UNSUBSCRIBE'
).split(' ')

const method = text(
  {
    description: 'HTTP method in upper case. GET includes HEAD.',
    write: 'a method in upper case such as GET',
    pattern: METHOD.source,
    examples: ['GET', 'POST'],
  },
  (value) => {
    if (METHODS.includes(value)) return undefined
    const message = METHOD.test(value)
      ? '{} is no method that is known, so no request has it; write one such as GET or POST'
      : '{} is not a method; write it in upper case'
    return { code: 'HEADGATE_RULES_VALUE', message, options: METHODS }
  },
)

const HOST =
  /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\])$/i

const host = text(
  {
    description: 'Host without a port; `*.example.com` is every name below example.com, not itself.',
    write: 'a host without a port, such as api.example.com or "*.example.com"',
    examples: ['api.example.com', '*.example.com'],
  },
  (value) =>
    HOST.test(value)
      ? undefined
      : '{} is not a host; write one without a port, such as api.example.com or "*.example.com"',
)

const headerValue = text({
  description: "The field's value, exactly; `*` is any.",
  write: 'a text such as "2", or "*"',
})

const header = z
  .record(z.string().check(fieldKey), oneOrMany(headerValue))
  .meta({ description: 'Fields that the request must carry: a value, a list of values, or `*` for any.' })

function fieldKey(context: z.core.ParsePayload<string>): void {
  const message = checkField(context.value)
  if (message !== undefined) context.issues.push({ code: 'custom', input: context.value, message })
}

const conditions = {
  path: oneOrMany(path).optional().meta({ description: 'One of these path patterns.' }),
  method: oneOrMany(method).optional().meta({ description: 'One of these methods; absent: all but CORS preflight.' }),
  host: oneOrMany(host).optional().meta({ description: 'One of these hosts.' }),
  header: header.optional(),
  ip: oneOrMany(network('A network such as 10.0.0.0/8; a single address too.'))
    .optional()
    .meta({ description: "The caller's address lies in one of these networks." }),
}

const match = section(
  {
    ...conditions,
    not: section(conditions, 'Matches where not everything in it does.').optional(),
    otherwise: flag('Matches where no other rule does.', false).optional(),
  },
  'Which requests: keys are ANDed, a list is ORed. Absent: all requests.',
  ['descriptor'],
)

const ALGORITHMS = [
  'token-bucket',
  'leaky-bucket',
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'concurrency',
] as const

const burst = integer('The most units that can be taken at once; default: the N of the rate.', 1, MAX_UNITS)

function overrideKey(context: z.core.ParsePayload<string>): void {
  if (context.value !== '') return
  context.issues.push({ code: 'custom', input: context.value, message: 'is an empty value; write one, or "*" for all' })
}

const override = z.union([
  ...rateOrCount('A rate, or unlimited; of concurrency a count.').options,
  section(
    { limit: rateOrCount('A rate, or unlimited; of concurrency a count.'), burst: burst.optional() },
    'A rate with a burst of its own.',
  ),
])

const limit = section(
  {
    name: name("The limit's name; default: its `by`, a list joined with +.").optional(),
    by: oneOrMany(name('What is counted by: global, ip, method, host, route or a dimension.')).meta({
      description: 'What is counted by; a list is one composite key.',
    }),
    limit: rateOrCount(
      'So many units a period, such as 800/s; `0/s` refuses all, `unlimited` does not limit. Of concurrency a bare count.',
    ),
    algorithm: word(ALGORITHMS, 'How many may pass when.', { default: 'token-bucket' }).optional(),
    burst: burst.optional(),
    initial: word(['full', 'empty'], 'Of a token bucket: how a counter begins that nothing is known of.', {
      default: 'full',
    }).optional(),
    queue: integer('Of a leaky bucket: how many units may wait; default: the N of the rate.', 0, MAX_UNITS).optional(),
    align: word(['clock', 'first-hit', 'calendar'], 'Of a fixed window: where it begins.', {
      default: 'clock',
    }).optional(),
    timeZone: timeZone('Of a calendar: whose days and months.').optional(),
    anchorDay: integer(
      'Of a calendar: the day that its weeks (1 is Monday, to 7) or months (1 to 31) begin with; default 1.',
      1,
      31,
    ).optional(),
    slices: integer('Of a sliding window: into how many parts it is cut.', 1, 60, 10).optional(),
    strict: flag('Of a sliding window: never more than N in any period, at the price of fewer.', false).optional(),
    ttl: duration('Of concurrency: how long a slot lasts whose holder is not heard of.', '1m').optional(),
    scope: word(['instance'], 'instance: each process has a budget of its own, in its memory.').optional(),
    overrides: z
      .record(z.string().check(overrideKey), override)
      .optional()
      .meta({ description: 'Other numbers for some values: exact, or a prefix with one final *.' }),
  },
  'How many units, counted by what.',
)

const costHeader = section(
  {
    header: text({ description: 'The field that holds the cost.', write: "a field's name such as x-cost" }, checkField),
    min: integer('Least cost; also where the field is absent.', 0, MAX_UNITS, 1).optional(),
    max: integer('Greatest cost; also where the field is unreadable.', 0, MAX_UNITS, 1).optional(),
    fromAnyone: flag('Read the field also from peers that are not trusted.', false).optional(),
  },
  'A cost that a field of the request says.',
)

const MODE = 'shadow: judged and counted, never enforced; off: as if the rule were not there.'
export const modes = z
  .union([word(['enforce', 'shadow', 'off'], MODE, { default: 'enforce' }), z.literal(false)])
  .meta({ description: MODE, default: 'enforce' })

export const onStoreFailure = word(
  ['local', 'open', 'closed'],
  'Without the store: judge by a local share, let pass, or refuse (503).',
  { default: 'local' },
)

export const headers = word(['standard', 'legacy', 'both', 'off'], 'Which rate-limit fields answers carry.', {
  default: 'standard',
})

const candidate = section(
  { limits: z.array(limit).min(1).meta({ description: 'Each takes the place of the limit of its name.' }) },
  'Other limits for this rule, judged beside the live ones on counters of their own, never enforced.',
)

const countIf = section(
  {
    status: oneOrMany(integer('A status of an answer.', 100, 599)).meta({
      description: 'Only requests whose answer has one of these are charged.',
    }),
  },
  'What is charged: the request is held until its answer is known.',
)

const penalty = section(
  {
    refusals: integer('After so many refusals', 1, MAX_UNITS),
    within: duration('within so long'),
    block: duration('the key is blocked for so long.'),
  },
  'Blocks keys that go on although they are refused.',
)

export const rule = section(
  {
    name: name("The rule's name; it is part of the counters' keys."),
    description: prose('Why this rule has these numbers.').optional(),
    match: match.optional(),
    limits: z.array(limit).min(1).optional().meta({ description: 'All are one check: all are charged or none.' }),
    allow: flag('Matching requests skip all limits; nothing is charged.', false).optional(),
    deny: flag('Matching requests are refused with 403; nothing is charged. Beats allow.', false).optional(),
    cost: z
      .union([integer('Units a request takes.', 0, MAX_UNITS, 1), costHeader])
      .optional()
      .meta({ description: 'Units a request takes, or the field that says so.', default: 1 }),
    mode: modes.optional(),
    accuracy: word(['exact', 'lease'], 'exact: every decision asks the store. lease: units are taken from it ahead.', {
      default: 'exact',
    }).optional(),
    onStoreFailure: onStoreFailure.optional(),
    headers: headers.optional(),
    disclose: flag('Show global limits in answers also where they did not refuse.', false).optional(),
    candidate: candidate.optional(),
    maxWait: duration('How long a request may wait in line.', '0ms', { mayBeZero: true }).optional(),
    afterWait: word(['refuse', 'allow'], 'allow: what waited maxWait in vain passes, uncharged and marked.', {
      default: 'refuse',
    }).optional(),
    countIf: countIf.optional(),
    penalty: penalty.optional(),
  },
  'Which requests, and how many of them. Every matching rule applies.',
  ['respond', 'schedule', 'learning'],
)
