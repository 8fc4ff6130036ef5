import type { Decision } from '../decision.ts'
import { policyNames } from './policy-name.ts'

export const PROBLEM_TYPE = 'application/problem+json'

const REGISTERED = 'https://iana.org/assignments/http-problem-types#'

const TITLES = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  414: 'URI Too Long',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
} as const

export type ProblemStatus = keyof typeof TITLES

/** The status of an answer to a refused decision. */
export function refusalStatus(decision: Decision): 403 | 429 | 503 {
  if (decision.reason === 'store') return 503
  return decision.reason === 'list' ? 403 : 429
}

/**
 * The body of an answer to a refused decision (RFC 9457): 429 with the registered type
 * `quota-exceeded`, 503 with `temporary-reduced-capacity` where the store is away and a rule refuses
 * then, 403 for a list. `violated-policies` names the limits that refused as the RateLimit fields do;
 * `retryAfterMs` is the exact wait in milliseconds, null where waiting cannot help.
 */
export function problemBody(decision: Decision): string {
  const status = refusalStatus(decision)
  if (status === 403) return problem(403, 'This caller is on a list that is refused.')
  const violated = violatedPolicies(decision)
  const waitMs = Number.isFinite(decision.retryAfterMs) ? decision.retryAfterMs : null
  return JSON.stringify({
    type: REGISTERED + (status === 503 ? 'temporary-reduced-capacity' : 'quota-exceeded'),
    title:
      status === 503
        ? 'Request cannot be satisfied due to temporary server capacity constraints'
        : 'Request cannot be satisfied as assigned quota has been exceeded',
    status,
    detail: status === 503 ? storeDetail(waitMs) : limitDetail(decision, violated, waitMs),
    'violated-policies': violated,
    retryAfterMs: waitMs,
  })
}

/** The body of any other answer of our own: `title` is the status's phrase, `detail` says what to do. */
export function problem(status: ProblemStatus, detail: string): string {
  return JSON.stringify({ type: 'about:blank', title: TITLES[status], status, detail })
}

function violatedPolicies(decision: Decision): string[] {
  const nameOf = policyNames(decision.limits)
  const refused = decision.limits.filter((status) => status.retryAfterMs > 0).map(nameOf)
  return refused.length > 0 || decision.limitedBy === undefined ? refused : [decision.limitedBy]
}

function limitDetail(decision: Decision, violated: readonly string[], waitMs: number | null): string {
  if (decision.reason === 'blocked') return `This caller is blocked.${tryAgain(waitMs)}`
  const limit = decision.limitedBy === undefined ? 'A limit' : `The limit ${JSON.stringify(refuserName(decision))}`
  if (waitMs === null) return `${limit} can never admit this request: it costs more than the limit holds.`
  const others = violated.length > 1 ? ` (and ${violated.length - 1} more)` : ''
  return `${limit}${others} is used up.${tryAgain(waitMs)}`
}

function refuserName({ limits, rule, limitedBy }: Decision): string | undefined {
  const refuser = limits.find((status) => status.name === limitedBy && status.rule === rule)
  return refuser ? policyNames(limits)(refuser) : limitedBy
}

function storeDetail(waitMs: number | null): string {
  return `Limits cannot be judged at the moment, and a rule refuses requests then.${tryAgain(waitMs)}`
}

function tryAgain(waitMs: number | null): string {
  if (waitMs === null) return ''
  return waitMs < 1000 ? ` Try again in ${Math.ceil(waitMs)} ms.` : ` Try again in ${Math.ceil(waitMs / 1000)} s.`
}
