import { type CheckItem, createEngine, memoryStore } from 'headgate'
import { describe, expect, it } from 'vitest'
import { errors, request, rules } from '../test-support/rules.ts'

const rule = (rest: string, limits = '[{ by: ip, limit: 5/s }, { by: host, limit: 9/s }]') =>
  `rules: [{ name: a, description: d, limits: ${limits}, ${rest} }]`

function check(text: string): { items: readonly CheckItem[]; rules: readonly object[] } {
  const match = rules(text).match(request())
  if (match.outcome !== 'check') throw new Error(match.outcome)
  return match
}

describe('a rule in mode shadow', () => {
  it('is judged in a group of its own, and marked as matched', () => {
    const { items, rules: matched } = check(rule('mode: shadow'))
    expect(items.map(({ name, group }) => [name, group])).toEqual([
      ['ip', 'shadow'],
      ['host', 'shadow'],
    ])
    expect(matched).toMatchObject([{ name: 'a', shadow: true }])
  })
})

describe('a candidate', () => {
  it('is judged beside the live limits, by its own numbers, on the same values', () => {
    const { items } = check(rule('candidate: { limits: [{ by: ip, limit: 3/s }] }'))
    expect(items.map(({ name, group, limit, key }) => [name, group, limit.limit, key])).toEqual([
      ['ip', 'enforced', 5, { text: '203.0.113.9' }],
      ['host', 'enforced', 9, { text: 'api.example.com' }],
      ['ip', 'candidate', 3, { text: '203.0.113.9' }],
    ])
  })

  it('has no penalty and no patience of its own, so that an engine takes it beside a rule that has them', async () => {
    const beside = 'candidate: { limits: [{ by: ip, limit: 3/s }] }, penalty: { refusals: 3, within: 1m, block: 1m }'
    const { items } = check(rule(`${beside}, maxWait: 10ms`))
    expect(items.map(({ group, penalty, maxWaitMs }) => [group, penalty?.refusals, maxWaitMs])).toEqual([
      ['enforced', 3, 10],
      ['enforced', 3, 10],
      ['candidate', undefined, undefined],
    ])
    const engine = createEngine({ store: memoryStore() })
    expect(await engine.check(items)).toMatchObject({ allowed: true, beside: [{ kind: 'candidate', allowed: true }] })
    await engine.close()
  })

  it('takes the place of a limit that there is, in a rule that is enforced', () => {
    expect(errors(rule('candidate: { limits: [{ by: method, limit: 3/s }] }'))).toEqual([
      expect.stringContaining(
        'rules[0].candidate: takes the place of a limit method, which this rule does not have; it has ip, host',
      ),
    ])
    expect(errors(rule('mode: shadow, candidate: { limits: [{ by: ip, limit: 3/s }] }'))).toEqual([
      expect.stringContaining('rules[0].candidate: has no meaning in mode: shadow'),
    ])
    expect(errors(rule('candidate: { limits: [{ by: ip, limit: 3/s }, { by: ip, limit: 2/s }] }'))).toEqual([
      expect.stringContaining('DUPLICATE rules[0].candidate.limits[1]'),
    ])
  })
})

describe('what a rule does about requests that come too soon', () => {
  it('is in what matched, and in the limits that wait', () => {
    const { items, rules: matched } = check(rule('maxWait: 250ms, afterWait: allow'))
    expect(items.map(({ maxWaitMs }) => maxWaitMs)).toEqual([250, 250])
    expect(matched).toMatchObject([{ maxWaitMs: 250, afterWait: 'allow' }])
    expect(check(rule('cost: 1')).rules).toMatchObject([{ maxWaitMs: 0, afterWait: 'refuse' }])
  })

  it('is a penalty with three numbers, on every limit', () => {
    const penalty = { refusals: 20, withinMs: 60_000, blockMs: 600_000 }
    const text = rule('penalty: { refusals: 20, within: 1m, block: 10m }')
    expect(check(text).items.map((item) => item.penalty)).toEqual([penalty, penalty])
    expect(errors(rule('penalty: { refusals: 20, within: 1m }'))).toEqual([
      expect.stringContaining('rules[0].penalty.block: is missing'),
    ])
  })

  it('has a meaning only where something waits', () => {
    expect(errors(rule('afterWait: allow'))).toEqual([
      expect.stringContaining('rules[0].afterWait: needs a maxWait above 0ms'),
    ])
  })
})

describe('countIf', () => {
  it('is a set of statuses', () => {
    expect(check(rule('countIf: { status: [401, 403] }')).rules).toMatchObject([{ countIf: new Set([401, 403]) }])
    expect(check(rule('countIf: { status: 401 }')).rules).toMatchObject([{ countIf: new Set([401]) }])
  })

  it.each(['[]', '[99]', '[600]', '["2xx"]', '[401.5]'])('refuses %s', (status) => {
    expect(errors(rule(`countIf: { status: ${status} }`))).toHaveLength(1)
  })
})

it.each([
  'candidate: { limits: [{ by: ip, limit: 1/s }] }',
  'maxWait: 1s',
  'countIf: { status: 401 }',
  'penalty: { refusals: 1, within: 1s, block: 1s }',
])('a list has no use for %s', (key) => {
  expect(errors(`rules: [{ name: a, description: d, match: { path: /x }, allow: true, ${key} }]`)).toEqual([
    expect.stringContaining('has no meaning with allow: true'),
  ])
})

it.each(['countIf: { status: 401 }', 'maxWait: 1s', 'penalty: { refusals: 1, within: 1s, block: 1s }'])(
  'a rule in mode shadow refuses %s, which would go by an answer that it does not touch',
  (key) => {
    expect(errors(rule(`mode: shadow, ${key}`))).toEqual([
      expect.stringContaining(`UNSUPPORTED rules[0].${key.split(':')[0]}: is not supported yet in mode: shadow`),
    ])
  },
)

it('a candidate is refused beside countIf', () => {
  const candidate = 'candidate: { limits: [{ by: ip, limit: 1/s }] }'
  expect(errors(rule(`countIf: { status: 401 }, ${candidate}`))).toEqual([
    expect.stringContaining('UNSUPPORTED rules[0].candidate: is not supported yet beside countIf'),
  ])
})
