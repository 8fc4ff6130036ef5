import fc from 'fast-check'
import { type Item, parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import type { Decision, LimitStatus } from '../decision.ts'
import type { MatchedRule } from '../rule-set.ts'
import { rateLimitFields } from './fields.ts'

const NOW = 1_900_000_000_000

function rule(name: string, more: Partial<MatchedRule> = {}): MatchedRule {
  return { name, headers: 'standard', disclose: false, globalLimits: ['global'], ...more }
}

function limit(name: string, more: Partial<LimitStatus> = {}): LimitStatus {
  const unused = {
    limit: 5,
    capacity: 5,
    periodMs: 1000,
    remaining: 4,
    retryAfterMs: 0,
    nextMs: 200,
    resetAfterMs: 200,
  }
  return { rule: 'api', name, ...unused, ...more }
}

const refused = (name: string, waitMs: number, more: Partial<LimitStatus> = {}) =>
  limit(name, { remaining: 0, retryAfterMs: waitMs, nextMs: waitMs, resetAfterMs: 1000, ...more })

function decision(...limits: LimitStatus[]): Decision {
  const refusers = limits.filter((status) => status.retryAfterMs > 0)
  const retryAfterMs = Math.max(0, ...refusers.map((status) => status.retryAfterMs))
  return { allowed: refusers.length === 0, retryAfterMs, delayMs: 0, limits, at: NOW, source: 'store', degraded: false }
}

const fieldsOf = (given: Decision, ...rules: MatchedRule[]) =>
  Object.fromEntries(rateLimitFields(given, rules, () => NOW))

describe('rateLimitFields', () => {
  it('tells an admitted caller the policy and what is left, and nothing about waiting (go-redis/redis_rate#42)', () => {
    expect(fieldsOf(decision(limit('user')), rule('api'))).toEqual({
      'RateLimit-Policy': '"user";q=5;w=1',
      RateLimit: '"user";r=4;t=1',
    })
  })

  it('tells a refused caller how long to wait', () => {
    expect(fieldsOf(decision(refused('user', 200)), rule('api'))).toEqual({
      'RateLimit-Policy': '"user";q=5;w=1',
      RateLimit: '"user";r=0;t=1',
      'Retry-After': '1',
    })
  })

  it('gives an item to each limit, in the order of the check', () => {
    const daily = limit('user-daily', {
      limit: 1000,
      capacity: 1000,
      periodMs: 86_400_000,
      remaining: 998,
      nextMs: 36_000_001,
    })
    const fields = fieldsOf(decision(limit('user'), daily), rule('api'))
    expect(fields['RateLimit-Policy']).toBe('"user";q=5;w=1, "user-daily";q=1000;w=86400')
    expect(fields.RateLimit).toBe('"user";r=4;t=1, "user-daily";r=998;t=36001')
  })

  it('rounds waits up: 0.493 s is 1, 1.000001 s is 2 (benwis/tower-governor#65)', () => {
    const after = (ms: number) => fieldsOf(decision(refused('user', ms)), rule('api'))['Retry-After']
    expect([after(0.001), after(493), after(1000), after(1000.001), after(86_400_000)]).toEqual([
      '1',
      '1',
      '1',
      '2',
      '86400',
    ])
  })

  it('names a limit with its rule where two rules share the name, whether it is shown or not', () => {
    const limits = [
      limit('user'),
      limit('ip'),
      limit('user', { rule: 'all' }),
      limit('global', { rule: 'all' }),
      refused('global', 9),
    ]
    expect(fieldsOf(decision(...limits), rule('api'), rule('all'))['RateLimit-Policy']).toBe(
      '"api/user";q=5;w=1, "ip";q=5;w=1, "all/user";q=5;w=1, "api/global";q=5;w=1',
    )
  })

  it('shows a global limit only where it refused, or with disclose', () => {
    const open = decision(limit('global'), limit('user'))
    expect(fieldsOf(open, rule('api')).RateLimit).toBe('"user";r=4;t=1')
    expect(fieldsOf(open, rule('api', { disclose: true })).RateLimit).toBe('"global";r=4;t=1, "user";r=4;t=1')
    expect(fieldsOf(decision(refused('global', 1), limit('user')), rule('api')).RateLimit).toBe(
      '"global";r=0;t=1, "user";r=4;t=1',
    )
    expect(fieldsOf(decision(limit('global')), rule('api'))).toEqual({})
    expect(fieldsOf(decision(limit('global')), rule('api', { headers: 'both' }))).toEqual({})
  })

  it('takes the larger of burst and rate for q, so that r never exceeds it', () => {
    const wide = limit('user', { limit: 5, capacity: 20, remaining: 19 })
    const narrow = limit('ip', { limit: 5, capacity: 2, remaining: 1 })
    expect(fieldsOf(decision(wide, narrow), rule('api'))['RateLimit-Policy']).toBe('"user";q=20;w=1, "ip";q=5;w=1')
  })

  it('rounds the period up, and leaves it out below a second', () => {
    const policy = (periodMs?: number) => {
      const status = limit('user')
      if (periodMs === undefined) delete status.periodMs
      else status.periodMs = periodMs
      return fieldsOf(decision(status), rule('api'))['RateLimit-Policy']
    }
    expect([policy(100), policy(1500), policy(undefined)]).toEqual(['"user";q=5', '"user";q=5;w=2', '"user";q=5'])
  })

  it('leaves t out where nothing is used', () => {
    const unused = limit('user', { remaining: 5, nextMs: 0, resetAfterMs: 0 })
    expect(fieldsOf(decision(unused), rule('api')).RateLimit).toBe('"user";r=5')
  })

  it('gives the refuser its own wait, not the time until one more unit', () => {
    const costly = refused('user', 2500, { remaining: 3, nextMs: 200 })
    expect(fieldsOf(decision(costly), rule('api'))).toMatchObject({ RateLimit: '"user";r=3;t=3', 'Retry-After': '3' })
  })

  it('promises no wait where waiting cannot help', () => {
    const never = refused('user', Number.POSITIVE_INFINITY, { limit: 0, capacity: 0, nextMs: 0 })
    expect(fieldsOf(decision(never), rule('api'))).toEqual({
      'RateLimit-Policy': '"user";q=0;w=1',
      RateLimit: '"user";r=0',
    })
  })

  it('sends Retry-After where no limit was judged', () => {
    const closed: Decision = { ...decision(), allowed: false, reason: 'store', retryAfterMs: 1000, source: 'policy' }
    expect(fieldsOf(closed, rule('api'))).toEqual({ 'Retry-After': '1' })
  })

  it('shows the limits of a limiter, which belong to no rule, under the one rule given', () => {
    const { rule: _, ...status } = limit('login')
    expect(fieldsOf(decision(status), rule('any')).RateLimit).toBe('"login";r=4;t=1')
  })

  it('follows numbers that change under one name, as overrides do', () => {
    const shared = rule('api')
    const policies = [5, 100, 5].map(
      (n) => fieldsOf(decision(limit('user', { limit: n, capacity: n })), shared)['RateLimit-Policy'],
    )
    expect(policies).toEqual(['"user";q=5;w=1', '"user";q=100;w=1', '"user";q=5;w=1'])
  })

  it('escapes what a name must not hold', () => {
    const odd = { ...limit('a"b\\c\u00e9\r\n'), rule: 'api' }
    const [[item]] = parseList(fieldsOf(decision(odd), rule('api')).RateLimit as string) as [Item]
    expect(item).toBe('a"b\\c%C3%A9%0D%0A')
  })

  describe('with legacy fields', () => {
    const legacy = rule('api', { headers: 'legacy' })

    it('takes the limit that refused', () => {
      const given = decision(limit('ip', { remaining: 0 }), refused('user', 200, { resetAfterMs: 900.001 }))
      expect(fieldsOf(given, legacy)).toEqual({
        'X-RateLimit-Limit': '5',
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': String(NOW / 1000 + 1),
        'Retry-After': '1',
      })
    })

    it('takes the limit with the lowest share left where none refused', () => {
      const given = decision(
        limit('user', { remaining: 3 }),
        limit('daily', { limit: 100, capacity: 100, remaining: 50, resetAfterMs: 60_000 }),
      )
      expect(fieldsOf(given, legacy)).toEqual({
        'X-RateLimit-Limit': '100',
        'X-RateLimit-Remaining': '50',
        'X-RateLimit-Reset': String(NOW / 1000 + 60),
      })
    })

    it.each([
      { says: 'when the window ends by the store', aheadMs: -3, resetAfterMs: 60_003, inSeconds: 60 },
      { says: 'now where the window ended meanwhile', aheadMs: -30, resetAfterMs: 10, inSeconds: 0 },
      {
        says: 'the wait from now where the store is an hour behind',
        aheadMs: -3_600_000,
        resetAfterMs: 60_001,
        inSeconds: 61,
      },
      {
        says: 'the wait from now where the store is an hour ahead',
        aheadMs: 3_600_000,
        resetAfterMs: 60_001,
        inSeconds: 61,
      },
    ])('says $says', ({ aheadMs, resetAfterMs, inSeconds }) => {
      const given = { ...decision(limit('user', { resetAfterMs })), at: NOW + aheadMs }
      expect(fieldsOf(given, legacy)['X-RateLimit-Reset']).toBe(String(NOW / 1000 + inSeconds))
    })

    it('takes the longest wait of several that refused', () => {
      const given = decision(refused('a', 200, { limit: 1 }), refused('b', 900, { limit: 7, capacity: 7 }))
      expect(fieldsOf(given, legacy)['X-RateLimit-Limit']).toBe('7')
    })

    it('sends both kinds on request, and each rule its own kind', () => {
      expect(Object.keys(fieldsOf(decision(limit('user')), rule('api', { headers: 'both' })))).toHaveLength(5)
      const two = decision(limit('user'), limit('ip', { rule: 'old', limit: 9, capacity: 9 }))
      expect(fieldsOf(two, rule('api'), rule('old', { headers: 'legacy' }))).toMatchObject({
        'RateLimit-Policy': '"user";q=5;w=1',
        'X-RateLimit-Limit': '9',
      })
    })
  })

  it('sends no rate-limit field where headers are off, but says when to come back', () => {
    expect(fieldsOf(decision(refused('user', 200)), rule('api', { headers: 'off' }))).toEqual({ 'Retry-After': '1' })
  })

  describe('laws', () => {
    const ms = fc.oneof(
      fc.integer({ min: 1, max: 10 ** 12 }),
      fc.integer({ min: 1, max: 10 ** 9 }).map((us) => us / 1000),
    )
    const status = fc
      .record({
        rule: fc.constantFrom('api', 'all'),
        name: fc.constantFrom('user', 'ip', 'global', 'user+route'),
        limit: fc.nat(2 ** 31),
        capacity: fc.nat(2 ** 31),
        periodMs: ms,
        left: fc.double({ min: 0, max: 1, noNaN: true }),
        refusedMs: fc.oneof(fc.constant(0), ms, fc.constant(Number.POSITIVE_INFINITY)),
        nextMs: fc.oneof(fc.constant(0), ms),
        resetAfterMs: ms,
      })
      .map(({ left, refusedMs, ...rest }): LimitStatus => {
        return { ...rest, remaining: Math.floor(left * rest.capacity), retryAfterMs: refusedMs }
      })
    const statuses = fc.uniqueArray(status, { selector: (each) => `${each.rule}/${each.name}`, maxLength: 6 })
    const matched = fc.tuple(
      ...['api', 'all'].map((name) =>
        fc.record({
          name: fc.constant(name),
          headers: fc.constantFrom('standard' as const, 'legacy' as const, 'both' as const, 'off' as const),
          disclose: fc.boolean(),
          globalLimits: fc.constant(['global']),
        }),
      ),
    )

    it('every number is an integer ≥ 0 in a well-formed structured field (alisaifee/flask-limiter#62)', () => {
      fc.assert(
        fc.property(statuses, matched, (limits, rules) => {
          const fields = fieldsOf(decision(...limits), ...rules)
          const policies = parseList(fields['RateLimit-Policy'] ?? '') as Item[]
          const states = parseList(fields.RateLimit ?? '') as Item[]
          expect(states.map(([name]) => name)).toEqual(policies.map(([name]) => name))
          expect(new Set(states.map(([name]) => name)).size).toBe(states.length)
          for (const [i, [, parameters]] of policies.entries()) {
            const state = states[i]?.[1]
            for (const value of [...parameters.values(), ...(state?.values() ?? [])]) {
              expect(Number.isInteger(value) && (value as number) >= 0).toBe(true)
            }
            expect(state?.get('r')).toBeLessThanOrEqual(parameters.get('q') as number)
            expect(parameters.get('w') ?? 1).toBeGreaterThanOrEqual(1)
            expect(state?.get('t') ?? 1).toBeGreaterThanOrEqual(1)
          }
          for (const name of ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'Retry-After']) {
            expect(fields[name] ?? '0').toMatch(/^\d+$/)
          }
          expect(Number(fields['X-RateLimit-Reset'] ?? NOW)).toBeGreaterThanOrEqual(NOW / 1000)
        }),
      )
    })

    it('Retry-After is at least 1 and at least every refusing t; admitted answers carry none (zulip#39879)', () => {
      fc.assert(
        fc.property(statuses, matched, (limits, rules) => {
          const given = decision(...limits)
          const after = fieldsOf(given, ...rules)['Retry-After']
          if (given.allowed || given.retryAfterMs === Number.POSITIVE_INFINITY) {
            expect(after).toBeUndefined()
            return
          }
          expect(after).toMatch(/^[1-9]\d*$/)
          const shown = rules.map((each) => ({ ...each, headers: 'standard' as const, disclose: true }))
          const states = parseList(fieldsOf(given, ...shown).RateLimit as string) as Item[]
          for (const [i, [, parameters]] of states.entries()) {
            if ((limits[i]?.retryAfterMs ?? 0) > 0)
              expect(Number(after)).toBeGreaterThanOrEqual(parameters.get('t') as number)
          }
        }),
      )
    })
  })
})
