import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkRate, isRate, parseRate, type Rate } from './rate.ts'
import { errors, itemsOf, rules } from './test-support/rules.ts'

const withLimit = (limit: string) => `rules: [{ name: a, description: d, limits: [{ by: ip, limit: ${limit} }] }]`

describe('a rate', () => {
  it.each([
    ['800/s', 800, 1000],
    ['0/s', 0, 1000],
    ['5/250ms', 5, 250],
    ['10/5m', 10, 300_000],
    ['60/minute', 60, 60_000],
    ['3/2hours', 3, 7_200_000],
    ['1000/day', 1000, 86_400_000],
    ['7/w', 7, 604_800_000],
    ['1/seconds', 1, 1000],
  ])('%s is units and a period', (text, units, periodMs) => {
    expect(parseRate(text)).toMatchObject({ units, periodMs, text, fixed: true })
  })

  it.each([
    ['1000/month', 'month', 30, false],
    ['5/years', 'year', 365, false],
    ['5/d', 'day', 1, true],
    ['5/weeks', 'week', 7, true],
    ['5/2d', undefined, 2, true],
    ['5/24h', undefined, 1, true],
  ])('%s has this name in a calendar: %s', (text, calendar, days, fixed) => {
    const rate = parseRate(text) as Rate
    expect([rate.calendar, rate.periodMs, rate.fixed]).toEqual([calendar, days * 86_400_000, fixed])
  })

  it.each(['5/2years', '1/1month'])('%s has no fixed length', (text) => {
    expect(parseRate(text)).toMatchObject({ code: 'HEADGATE_RULES_VALUE' })
  })

  it.each(['5/fortnight', '5/S', '5/M', '5/ss', '5/mss', '5/constructor', '5/0s', '5/-1s'])(
    '%s has no known period',
    (text) => {
      expect(isRate(parseRate(text))).toBe(false)
    },
  )

  it.each(['9999999999999999/s', `${'9'.repeat(40)}/s`, '1/9999999999999999w', `1/${'9'.repeat(400)}w`])(
    '%s is too large, and that is what the error says',
    (text) => {
      expect(parseRate(text)).toEqual({
        code: 'HEADGATE_RULES_RANGE',
        message: '{} is too large; write at most 9007199254740991 units, a period of at most 3660d',
      })
    },
  )

  it('is read or refused for any text, and never anything between', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.+e-]{0,6}\/[0-9]{0,3}[a-z]{0,6}$/)), (text) => {
        const rate = parseRate(text)
        if (!isRate(rate)) return
        expect(Number.isSafeInteger(rate.units) && rate.units >= 0).toBe(true)
        expect(Number.isSafeInteger(rate.periodMs) && rate.periodMs >= 1).toBe(true)
        expect(text).toMatch(/^\d+\/\d*[a-z]+$/)
      }),
    )
  })
})

// What a limit may look like by mistake, as YAML has it.
const WRONG = [
  '"6O"',
  '""',
  '" "',
  '0x10',
  'null',
  '.nan',
  '.inf',
  '-1',
  '1.5',
  '"100"',
  '100',
  '6O',
  '"5 /s"',
  '" 5/s"',
  '"+5/s"',
  '"1.5/s"',
  '"1e3/s"',
  '05/s',
  'true',
  '[5/s]',
  '{}',
]

describe('a limit that is no rate', () => {
  it.each(WRONG)('%s is an error that says what to write (ahliweb/awcms#601)', (limit) => {
    const [error, ...more] = errors(withLimit(limit))
    expect(error).toMatch(/^1:\d+ VALUE rules\[0\]\.limits\[0\]\.limit.*; write /)
    expect(more).toEqual([])
  })

  it.each(['6O', ' ', '0x10', 'null', 'NaN', 'Infinity', '-1', '1.5', '100'])(
    '%j from the environment is the same error, and is not shown (NexaSphere#763)',
    (value) => {
      const found = errors(withLimit('"${LIMIT}"'), { LIMIT: value })
      expect(found).toHaveLength(1)
      expect(found[0]).toMatch(/VALUE .*"\$\{LIMIT\}" is not a rate; write /)
    },
  )

  it('an empty variable is an error of its own (meshmonitor#1981)', () => {
    expect(errors(withLimit('"${LIMIT}"'), { LIMIT: '' })[0]).toContain(
      'ENV rules[0].limits[0].limit: the environment variable LIMIT is not set',
    )
  })

  it.each(['0', '-1', '1.5', '.nan', '.inf', '"5"', 'null', '1e20'])('a burst of %s is an error', (burst) => {
    const found = errors(withLimit(`5/s, burst: ${burst}`))
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/(VALUE|RANGE) rules\[0\]\.limits\[0\]\.burst.*; write /)
  })

  it('numbers that leave the exact range are refused with numbers that fit', () => {
    const found = errors(withLimit('1000003/day, burst: 1000000'))
    expect(found[0]).toMatch(/RANGE rules\[0\]\.limits\[0\]\.burst: .*these fit: /)
  })

  it.each([
    ['1000003/day, burst: 1000000', 'limit 1000003/day leaves the range'],
    ['5/4000d, algorithm: fixed-window', 'the period of 5/4000d is longer than ten years (3660d)'],
    ['5/4000d', 'the period of 5/4000d is longer than ten years (3660d)'],
  ])('the period of %s is shown as the file has it, not in ms', (limit, message) => {
    const found = errors(withLimit(limit))
    expect(found).toEqual([expect.stringContaining(message)])
    expect(found[0]).not.toMatch(/ms|\d{9}/)
  })

  it('numbers of the environment are not shown when they leave the exact range', () => {
    const found = errors(withLimit('"${N}/day", burst: 1000000'), { N: '1000003' })
    expect(found[0]).toContain('leave the range')
    expect(found.join()).not.toContain('1000003')
  })
})

describe('what is explicit', () => {
  it('0/s refuses all', () => {
    expect(itemsOf(rules(withLimit('0/s')), {})[0]?.limit).toMatchObject({ limit: 0, capacity: 0 })
  })

  it('unlimited does not limit', () => {
    expect(itemsOf(rules(withLimit('unlimited')), {})).toEqual([])
    expect(checkRate('unlimited')).toBeUndefined()
  })

  it('a burst beside unlimited or 0/s is a contradiction', () => {
    expect(errors(withLimit('unlimited, burst: 5'))[0]).toContain('CONFLICT')
    expect(errors(withLimit('0/s, burst: 5'))[0]).toContain('CONFLICT')
  })
})
