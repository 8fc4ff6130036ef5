import { describe, expect, it } from 'vitest'
import type { Decision, LimitStatus } from '../decision.ts'
import { problem, problemBody, refusalStatus } from './problem.ts'

function refusal(waitMs: number, more: Partial<Decision> = {}): Decision {
  const numbers = { limit: 5, capacity: 5, periodMs: 1000, remaining: 0, nextMs: waitMs, resetAfterMs: waitMs }
  const limits: LimitStatus[] = [
    { rule: 'api', name: 'user', ...numbers, retryAfterMs: waitMs },
    { rule: 'api', name: 'ip', ...numbers, retryAfterMs: 0 },
  ]
  const who = { rule: 'api', limitedBy: 'user', reason: 'limit' as const }
  return {
    allowed: false,
    ...who,
    retryAfterMs: waitMs,
    delayMs: 0,
    limits,
    at: 0,
    source: 'store',
    degraded: false,
    ...more,
  }
}

const bodyOf = (decision: Decision) => JSON.parse(problemBody(decision)) as Record<string, unknown>

describe('problemBody', () => {
  it('is the registered problem type for a limit that is used up, with the exact wait', () => {
    expect(bodyOf(refusal(183.412))).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: 'The limit "user" is used up. Try again in 184 ms.',
      'violated-policies': ['user'],
      retryAfterMs: 183.412,
    })
  })

  it('names limits as the RateLimit fields do', () => {
    const decision = refusal(1500)
    const other = { ...(decision.limits[0] as LimitStatus), rule: 'all', retryAfterMs: 10 }
    const body = bodyOf({ ...decision, limits: [...decision.limits, other] })
    expect(body['violated-policies']).toEqual(['api/user', 'all/user'])
    expect(body.detail).toBe('The limit "api/user" (and 1 more) is used up. Try again in 2 s.')
  })

  it('says null where waiting cannot help', () => {
    expect(bodyOf(refusal(Number.POSITIVE_INFINITY, { reason: 'never' }))).toMatchObject({
      status: 429,
      retryAfterMs: null,
      detail: 'The limit "user" can never admit this request: it costs more than the limit holds.',
    })
  })

  it('is 503 and another type where a rule refuses without the store', () => {
    const decision = refusal(1000, { reason: 'store', source: 'policy', degraded: true, limits: [] })
    expect(refusalStatus(decision)).toBe(503)
    expect(bodyOf(decision)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      status: 503,
      'violated-policies': ['user'],
      retryAfterMs: 1000,
    })
  })

  it('is 403, never 429, for a list', () => {
    expect(bodyOf(refusal(0, { reason: 'list' }))).toMatchObject({
      type: 'about:blank',
      title: 'Forbidden',
      status: 403,
    })
  })
})

describe('problem', () => {
  it.each([
    [400, 'Bad Request'],
    [403, 'Forbidden'],
    [404, 'Not Found'],
    [413, 'Content Too Large'],
    [417, 'Expectation Failed'],
    [502, 'Bad Gateway'],
    [504, 'Gateway Timeout'],
  ] as const)('%i is titled %s', (status, title) => {
    expect(JSON.parse(problem(status, 'why'))).toEqual({ type: 'about:blank', title, status, detail: 'why' })
  })
})
