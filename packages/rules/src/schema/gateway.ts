import { z } from 'zod'
import { LISTEN_HINT, parseListen } from '../listen.ts'
import { PATH_EXCEPTIONS } from '../paths/normalize.ts'
import { flag, integer, type Objection, oneOrMany, section, text, word } from './notes.ts'
import { anyText, checkOrigin, duration, fieldName, network } from './values.ts'

function listen(fallback: string) {
  return text({ description: `Where to listen: ${LISTEN_HINT}.`, write: LISTEN_HINT, default: fallback }, (value) =>
    parseListen(value) ? undefined : `{} is no address to listen on; write ${LISTEN_HINT}`,
  )
}

const ALLOW = new Set<string>(PATH_EXCEPTIONS)

const paths = section(
  {
    case: word(['insensitive', 'sensitive'], 'Whether matching tells cases apart.', {
      default: 'insensitive',
    }).optional(),
    trailingSlash: word(['ignore', 'strict'], 'Whether matching tells /a/ from /a.', { default: 'ignore' }).optional(),
    allow: z
      .array(
        text(
          { description: `One of ${PATH_EXCEPTIONS.join(' ')}`, write: `one of ${PATH_EXCEPTIONS.join(' ')}` },
          (value) =>
            ALLOW.has(exception(value))
              ? undefined
              : `{} is nothing that can be allowed; write one of ${PATH_EXCEPTIONS.join(' ')}`,
        ),
      )
      .optional()
      .meta({ description: 'What paths may hold although servers disagree about it.' }),
  },
  'How request paths are read.',
)

/** `%2f` is `%2F`, `NUL` is `%00`. */
export function exception(value: string): string {
  const upper = value.toUpperCase()
  return upper === 'NUL' ? '%00' : upper
}

const route = section(
  {
    path: text({ description: 'Path pattern, as in rules.', write: 'a path such as /api/*', pattern: '^/' }, (value) =>
      value.startsWith('/') ? undefined : '{} is not a path; write one that begins with /, such as /api/*',
    ),
    upstream: oneOrMany(
      text(
        {
          description: 'An origin without a path, such as http://127.0.0.1:3000.',
          write: 'an origin such as http://127.0.0.1:3000',
        },
        checkOrigin,
      ),
    ).meta({ description: 'Where requests go; several are taken in turn.' }),
    host: word(['pass', 'upstream'], "Which Host the upstream sees: the caller's or its own.", {
      default: 'pass',
    }).optional(),
    stripPrefix: flag('Take the part before /* off the forwarded path.', false).optional(),
    timeout: duration('Until response headers, then between pieces of the body.', '30s').optional(),
  },
  'Which requests go where.',
)

const cors = section(
  {
    origins: z
      .array(
        text({ description: 'An origin, or *.', write: 'an origin such as https://shop.example, or "*"' }, (value) =>
          value === '*' ? undefined : checkCorsOrigin(value),
        ),
      )
      .min(1)
      .meta({ description: 'Origins such as https://shop.example, or *.' }),
  },
  'Who may read our own 429 and 503 from a page of another origin.',
)

/** Browsers send origins in one spelling, and they are compared as text. */
function checkCorsOrigin(value: string): string | Objection | undefined {
  const problem = checkOrigin(value)
  if (problem !== undefined) return problem
  const { origin } = new URL(value)
  if (origin === value) return undefined
  return { code: 'HEADGATE_RULES_VALUE', message: '{} is not as browsers send it', fix: origin }
}

export const gateway = section(
  {
    listen: listen('127.0.0.1:8080').optional(),
    workers: integer('Processes; only 1 for now.', 1, 1024, 1).optional(),
    drain: duration('How long a shutdown waits for requests under way.', '10s', { mayBeZero: true }).optional(),
    paths: paths.optional(),
    cors: cors.optional(),
    trustedProxies: z
      .array(network('A network of proxies.'))
      .optional()
      .meta({ description: "Proxies whose word about the caller's address is taken; default none." }),
    trustedHops: integer('How many proxies stand in front, instead of trustedProxies.', 1, 100).optional(),
    clientAddress: fieldName('The one field read for the caller: x-forwarded-for, forwarded, or another name.')
      .optional()
      .meta({ default: 'x-forwarded-for' }),
    routes: z.array(route).optional().meta({ description: 'Exact before longest; no route is 404.' }),
  },
  'The reverse proxy.',
)

const token = anyToken('Bearer token that may also write.')

function anyToken(description: string) {
  return text({ description, write: 'a token such as "${ADMIN_TOKEN}"' }, (value) =>
    /^[\x21-\x7e]*$/.test(value) ? undefined : 'a token holds printable ASCII without spaces',
  )
}

export const admin = section(
  {
    listen: listen('127.0.0.1:8083').optional(),
    token: token.optional(),
    readToken: anyToken('Bearer token that may only read.').optional(),
    hosts: z
      .array(anyText({ description: 'A host name.', write: 'a host name such as headgate.internal' }))
      .optional()
      .meta({ description: 'Host names that are answered, beside IP addresses and localhost.' }),
  },
  'Health, metrics and the admin API.',
)
