import { describe, expect, it } from 'vitest'
import { errors, itemsOf, rules, warnings } from '../test-support/rules.ts'

const withLimit = (limit: string, by = 'ip') =>
  `dimensions: { u: { header: u } }\nrules: [{ name: a, description: d, limits: [{ by: ${by}, limit: ${limit} }] }]`
const only = (limit: string) => rules(withLimit(limit)).rules[0]?.limits[0]

describe('each algorithm of a rule file', () => {
  it.each([
    ['800/s, burst: 120', '800/s burst 120', { algorithm: 'token-bucket', capacity: 120 }],
    ['5/m, initial: empty', '5/m, empty at first', { algorithm: 'token-bucket', startsEmpty: true }],
    ['5/m, algorithm: leaky-bucket', '5/m leaky-bucket', { algorithm: 'leaky-bucket', capacity: 6 }],
    ['5/m, algorithm: leaky-bucket, queue: 9', '5/m leaky-bucket, queue 9', { capacity: 10 }],
    ['5/10m, algorithm: fixed-window', '5/10m fixed-window', { algorithm: 'fixed-window', periodUs: 600_000_000 }],
    ['5/m, algorithm: fixed-window, align: first-hit', '5/m fixed-window, first-hit', { algorithm: 'fixed-window' }],
    [
      '1000/day, algorithm: fixed-window, align: calendar, timeZone: Asia/Shanghai',
      '1000/day, calendar Asia/Shanghai',
      { algorithm: 'fixed-window', periodUs: 86_400_000_000 },
    ],
    [
      '9/month, algorithm: fixed-window, align: calendar, anchorDay: 15',
      '9/month, calendar UTC, from day 15',
      { limit: 9, periodUs: 30 * 86_400_000_000 },
    ],
    ['9/years, algorithm: fixed-window, align: calendar', '9/years, calendar UTC', { periodUs: 365 * 86_400_000_000 }],
    ['20/m, algorithm: sliding-window', '20/m sliding-window, 10 slices', { algorithm: 'sliding-window' }],
    [
      '20/m, algorithm: sliding-window, slices: 4, strict: true',
      '20/m sliding-window, 4 slices, strict',
      { algorithm: 'sliding-window' },
    ],
    ['20/m, algorithm: sliding-log', '20/m sliding-log', { algorithm: 'sliding-log', limit: 20 }],
    ['10, algorithm: concurrency', '10 held at once, ttl 1m', { algorithm: 'concurrency', limit: 10 }],
    ['10, algorithm: concurrency, ttl: 5s', '10 held at once, ttl 5s', { periodUs: 5_000_000 }],
    ['"10", algorithm: concurrency', '10 held at once, ttl 1m', { limit: 10 }],
    ['5/s, scope: instance', '5/s, each instance its own', { scope: 'instance' }],
    ['20/m, algorithm: sliding-log, scope: instance', '20/m sliding-log, each instance its own', { scope: 'instance' }],
    ['unlimited, algorithm: concurrency', 'unlimited', undefined],
  ])('%s is %s', (written, words, made) => {
    const limit = only(written)
    expect(limit?.words).toBe(words)
    if (made === undefined) expect(limit?.limit).toBeUndefined()
    else expect(limit?.limit).toMatchObject(made)
  })

  it('takes a count from the environment, and a zone', () => {
    const text = withLimit('"${SLOTS}", algorithm: concurrency')
    expect(rules(text, { SLOTS: '7' }).rules[0]?.limits[0]?.limit).toMatchObject({ limit: 7 })
    const daily = withLimit('1/day, algorithm: fixed-window, align: calendar, timeZone: "${TZ}"')
    expect(rules(daily, { TZ: 'Asia/Tokyo' }).rules[0]?.limits[0]?.timeZone).toBe('Asia/Tokyo')
    expect(errors(daily, { TZ: 'Secret/Place' }).join()).not.toContain('Secret')
  })

  it.each([
    ['5/m, algorithm: leaky-bucket, queue: 9', '8/m', { algorithm: 'leaky-bucket', limit: 8, capacity: 10 }],
    ['5/day, algorithm: fixed-window, align: calendar', '8/month', { algorithm: 'fixed-window', limit: 8 }],
    ['5/m, algorithm: sliding-window', '8/m', { algorithm: 'sliding-window', limit: 8 }],
    ['5/m, algorithm: sliding-log', '{ limit: 8/h }', { algorithm: 'sliding-log', limit: 8 }],
    ['5, algorithm: concurrency, ttl: 9s', '8', { algorithm: 'concurrency', limit: 8, periodUs: 9_000_000 }],
    ['5, algorithm: concurrency', '{ limit: 8 }', { algorithm: 'concurrency', limit: 8 }],
    ['5/s, scope: instance', '{ limit: 8/s, burst: 9 }', { limit: 8, capacity: 9, scope: 'instance' }],
  ])('has overrides that share its settings: %s, acme: %s', (limit, override, made) => {
    const file = rules(withLimit(`${limit}, overrides: { acme: ${override} }`, 'u'))
    expect(itemsOf(file, { headers: { u: 'acme' } })[0]?.limit).toMatchObject(made)
    expect(itemsOf(file, { headers: { u: 'bob' } })[0]?.limit).toMatchObject({ limit: 5 })
  })
})

describe('what does not belong to an algorithm', () => {
  it.each([
    ['5/s, algorithm: fixed-window, burst: 9', 'CONFLICT', 'burst', 'belongs to algorithm: token-bucket'],
    ['5/s, queue: 9', 'CONFLICT', 'queue', 'belongs to algorithm: leaky-bucket, and this limit is a token-bucket'],
    ['5/s, align: clock', 'CONFLICT', 'align', 'belongs to algorithm: fixed-window'],
    ['5/s, timeZone: UTC', 'CONFLICT', 'timeZone', 'belongs to algorithm: fixed-window'],
    ['5/s, slices: 9', 'CONFLICT', 'slices', 'belongs to algorithm: sliding-window'],
    ['5/s, algorithm: sliding-log, strict: true', 'CONFLICT', 'strict', 'belongs to algorithm: sliding-window'],
    ['5/s, ttl: 9s', 'CONFLICT', 'ttl', 'belongs to algorithm: concurrency'],
    ['5, algorithm: concurrency, initial: empty', 'CONFLICT', 'initial', 'belongs to algorithm: token-bucket'],
    ['5/d, algorithm: fixed-window, timeZone: UTC', 'CONFLICT', 'timeZone', 'needs align: calendar'],
    ['5/d, algorithm: fixed-window, anchorDay: 1', 'CONFLICT', 'anchorDay', 'needs align: calendar'],
    ['5/s, algorithm: concurrency', 'VALUE', 'limit', '"5/s" is a rate; concurrency takes a bare count'],
    ['5', 'VALUE', 'limit', 'a bare count is for algorithm: concurrency'],
    ['5/month', 'VALUE', 'limit', '"5/month" has no fixed length; add algorithm: fixed-window and align: calendar'],
    ['5/month, algorithm: fixed-window', 'VALUE', 'limit', 'has no fixed length'],
    ['5/2months, algorithm: fixed-window, align: calendar', 'VALUE', 'limit', 'write one month, such as 1000/month'],
    ['5/s, algorithm: fixed-window, align: calendar', 'VALUE', 'limit', 'is no period of a calendar'],
    ['5/24h, algorithm: fixed-window, align: calendar', 'VALUE', 'limit', 'is no period of a calendar'],
    [
      '5/day, algorithm: fixed-window, align: calendar, timeZone: Asia/Shangai',
      'VALUE',
      'timeZone',
      '"Asia/Shangai" is no time zone that is known here; write an IANA name such as UTC or Asia/Shanghai; did you mean Asia/Shanghai',
    ],
    ['5/week, algorithm: fixed-window, align: calendar, anchorDay: 8', 'VALUE', 'anchorDay', 'from 1 (Monday) to 7'],
    ['5/year, algorithm: fixed-window, align: calendar, anchorDay: 1', 'VALUE', 'anchorDay', 'January 1'],
    ['5/month, algorithm: fixed-window, align: calendar, anchorDay: 32', 'RANGE', 'anchorDay', 'from 1 to 31'],
    ['10001/m, algorithm: sliding-log', 'RANGE', 'limit', '10001 is above the 10000 units'],
    ['10001, algorithm: concurrency', 'RANGE', 'limit', '10001 is above 10000 slots'],
    ['1000003/day, algorithm: leaky-bucket, queue: 1000000', 'RANGE', 'queue', 'these fit: queue'],
    ['5/s, algorithm: sliding-window, slices: 61', 'RANGE', 'slices', 'from 1 to 60'],
    ['5/s, scope: process', 'VALUE', 'scope', 'write instance'],
    ['5/s, algorithm: gcra, queue: 5', 'VALUE', 'algorithm', 'write token-bucket, leaky-bucket, fixed-window'],
  ])('%s is one error: %s %s: %s', (limit, code, key, message) => {
    const [error, ...more] = errors(withLimit(limit))
    expect(more).toEqual([])
    expect(error).toContain(` ${code} rules[0].limits[0].${key}: `)
    expect(error).toContain(message)
  })

  it.each([
    ['5/s, algorithm: sliding-log', '{ limit: 8/s, burst: 9 }', 'acme.burst: belongs to algorithm: token-bucket'],
    ['5, algorithm: concurrency', '8/s', 'acme: "8/s" is a rate; concurrency takes a bare count'],
    ['5/s', '8', 'acme: 8 is not a rate; write'],
    ['5/day, algorithm: fixed-window, align: calendar', '8/s', 'acme: "8/s" is no period of a calendar'],
    ['5/m, algorithm: sliding-log', '10001/m', 'acme: 10001 is above'],
  ])('is an error in an override too: %s, acme: %s', (limit, override, message) => {
    const found = errors(withLimit(`${limit}, overrides: { acme: ${override} }`, 'u'))
    expect(found).toEqual([expect.stringContaining(`limits[0].overrides.${message}`)])
  })

  it('is reported with all the rest, in one run', () => {
    const text = `rules:
  - name: a
    description: d
    limits:
      - { name: x, by: ip, limit: 5/month, burst: 3, ttl: 1s }
      - { name: y, by: ip, limit: 5/s, algorithm: concurrency }
      - { name: z, by: ip, limit: 5/day, algorithm: fixed-window, align: calendar, timeZone: Nowhere, anchorDay: 3 }
`
    expect(errors(text).map((error) => error.split(': ')[0])).toEqual([
      '5:35 VALUE rules[0].limits[0].limit',
      '5:54 CONFLICT rules[0].limits[0].ttl',
      '6:35 VALUE rules[0].limits[1].limit',
      expect.stringContaining('rules[0].limits[2].timeZone'),
      expect.stringContaining('rules[0].limits[2].anchorDay'),
    ])
  })

  it.each([
    ['5/week', 'timeZone: Nowhere, anchorDay: 8', ['timeZone', 'anchorDay']],
    ['5/day', 'timeZone: Nowhere, anchorDay: 3', ['timeZone', 'anchorDay']],
    ['5/90s', 'timeZone: Nowhere, anchorDay: 3', ['limit', 'timeZone']],
    ['5/month', 'timeZone: +01:00, anchorDay: 31', ['timeZone']],
    ['often', 'timeZone: Nowhere', ['limit', 'timeZone']],
    ['unlimited', 'timeZone: Nowhere', ['timeZone']],
    ['5/year', 'timeZone: UTC, anchorDay: 1', ['anchorDay']],
  ])('tells all that is wrong of a calendar in one run: %s, %s', (limit, keys, places) => {
    const found = errors(withLimit(`${limit}, algorithm: fixed-window, align: calendar, ${keys}`))
    expect(found.map((error) => / rules\[0\]\.limits\[0\]\.(\w+): /.exec(error)?.[1])).toEqual(places)
  })
})

describe('limits that hold what this process counts itself', () => {
  const rule = (limit: string, rest: string) =>
    `rules: [{ name: a, description: d, limits: [{ by: ip, limit: ${limit} }], ${rest} }]`

  it.each([
    ['5, algorithm: concurrency', 'mode: shadow', 'UNSUPPORTED rules[0].limits[0].algorithm'],
    ['5/s, scope: instance', 'mode: shadow', 'UNSUPPORTED rules[0].limits[0].scope'],
    ['5, algorithm: concurrency', 'countIf: { status: 401 }', 'CONFLICT rules[0].countIf'],
    ['5/s, scope: instance', 'penalty: { refusals: 3, within: 1m, block: 1h }', 'UNSUPPORTED rules[0].limits[0].scope'],
    [
      '5/s',
      'candidate: { limits: [{ by: ip, limit: 3, algorithm: concurrency }] }',
      'UNSUPPORTED rules[0].candidate.limits[0].algorithm',
    ],
    [
      '5/s',
      'candidate: { limits: [{ by: ip, limit: 3/s, scope: instance }] }',
      'UNSUPPORTED rules[0].candidate.limits[0].scope',
    ],
  ])('are refused where they would be judged wrongly: %s, %s', (limit, rest, message) => {
    expect(errors(rule(limit, rest))).toEqual([expect.stringContaining(message)])
  })
})

it('a slot that lapses within a second is doubted', () => {
  expect(warnings(withLimit('5, algorithm: concurrency, ttl: 999ms'))[0]).toMatch(
    /^rules\[0\]\.limits\[0\]\.ttl: "?999ms"? is less than a second/,
  )
  expect(warnings(withLimit('5, algorithm: concurrency, ttl: 1s'))).toEqual([])
})
