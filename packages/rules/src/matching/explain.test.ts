import { describe, expect, it } from 'vitest'
import { request, rules } from '../test-support/rules.ts'

const file = rules(`
dimensions:
  user: { header: x-user }
  team: { header: x-team, missing: skip }
  key: { header: x-key, missing: deny }
rules:
  - name: detail
    description: d
    match: { path: [/a/:id, /a/*], method: GET }
    cost: 2
    limits: [{ by: user, limit: 5/s, overrides: { "free-*": 1/s, vip: unlimited } }, { by: team, limit: 5/s }, { by: [user, ip], limit: 9/s }, { name: none, by: ip, limit: unlimited }]
  - { name: office, description: d, match: { ip: 10.0.0.0/8 }, allow: true }
  - { name: keyed, description: d, match: { path: /keyed }, limits: [{ by: key, limit: 5/s }] }
  - { name: off, description: d, mode: off, limits: [{ by: ip, limit: 5/s }] }
  - { name: rest, description: d, match: { otherwise: true }, limits: [{ by: ip, limit: 5/s }] }`)

const why = (parts: Parameters<typeof request>[0]) =>
  Object.fromEntries(file.explain(request(parts)).rules.map((rule) => [rule.rule, rule.why]))

describe('explain', () => {
  it('says why rules do not match', () => {
    expect(why({ path: '/a/7', method: 'POST' })).toEqual({
      detail: 'the method is none of GET, HEAD',
      office: 'the address is in none of 10.0.0.0/8',
      keyed: 'the path is none of /keyed',
      off: 'its mode is off',
      rest: 'every path where no other rule matches',
    })
    expect(why({ path: '/a/7' })).toMatchObject({
      detail: 'GET /a/:id or /a/*',
      rest: 'another rule matches, and this is for the others',
    })
  })

  it('shows what would be judged, with keys and notes', () => {
    const { match, rules: explained } = file.explain(request({ path: '/a/7', headers: { 'x-user': 'free-1' } }))
    expect(explained[0]).toMatchObject({
      rule: 'detail',
      kind: 'limits',
      matched: true,
      pattern: '/a/:id',
      cost: 2,
      limits: [
        {
          name: 'user',
          by: ['user'],
          key: 'detail:user:free-1',
          note: 'override free-*',
          item: { cost: 2, limit: { limit: 1 } },
        },
        { name: 'team', note: 'team is missing (header x-team), so the limit is dropped' },
        { name: 'user+ip', key: 'detail:user+ip:free-1:203.0.113.9' },
        { name: 'none', note: 'unlimited' },
      ],
    })
    expect(explained[0]?.limits[1]).not.toHaveProperty('item')
    expect(match).toEqual(file.match(request({ path: '/a/7', headers: { 'x-user': 'free-1' } })))
  })

  it('notes values that are missing, and limits that are lifted', () => {
    const notes = (parts: Parameters<typeof request>[0]) =>
      file.explain(request(parts)).rules.flatMap(({ limits }) => limits.map(({ note }) => note))
    expect(notes({ path: '/a/7' })[0]).toBe('user is missing (header x-user), so it is counted by address')
    expect(notes({ path: '/a/7', headers: { 'x-user': 'vip' } })[0]).toBe('override vip: unlimited')
    expect(notes({ path: '/keyed' })).toEqual(['key is missing (header x-key), so the request is refused with 400'])
    expect(file.explain(request({ path: '/keyed' })).match).toMatchObject({ outcome: 'missing', dimension: 'key' })
  })

  it('says why a field did not say the cost', () => {
    const cost = (settings: string, parts: Parameters<typeof request>[0]) =>
      rules(
        `rules: [{ name: a, description: d, cost: { header: X-Cost, max: 5${settings} }, limits: [{ by: ip, limit: 5/s }] }]`,
      )
        .explain(request(parts))
        .rules.map((rule) => [rule.cost, rule.note])[0]
    const headers = { 'x-cost': '3' }
    expect(cost('', { headers })).toEqual([
      1,
      'x-cost is not read: 203.0.113.9 is no trusted proxy, and the cost has no fromAnyone: true',
    ])
    expect(cost('', { headers, trusted: true })).toEqual([3, undefined])
    expect(cost(', fromAnyone: true', { headers })).toEqual([3, undefined])
    expect(cost('', { trusted: true })).toEqual([1, 'x-cost is absent, so it costs min'])
    expect(cost(', fromAnyone: true', { headers: { 'x-cost': ['3', '4'] } })).toEqual([
      5,
      'x-cost is unreadable, so it costs max',
    ])
  })

  it('says the same as match', () => {
    for (const parts of [{ path: '/a/7' }, { path: '/x' }, { ip: '10.0.0.1' }, { path: '/keyed' }]) {
      expect(file.explain(request(parts)).match).toEqual(file.match(request(parts)))
    }
  })
})
