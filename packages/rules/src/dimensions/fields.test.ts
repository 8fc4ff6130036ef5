import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cookieValue, fieldText, normalizeEmail, queryValue, singleValue } from './fields.ts'

describe('a field', () => {
  it('that arrives twice with different values is missing', () => {
    expect(singleValue(['a', 'b'])).toBeUndefined()
    expect(singleValue(['a', 'a'])).toBe('a')
  })

  it('that is absent or empty is missing', () => {
    expect(singleValue(undefined)).toBeUndefined()
    expect(singleValue([])).toBeUndefined()
    expect(singleValue([''])).toBeUndefined()
  })
})

describe('a cookie', () => {
  it.each([
    ['sid=abc', 'abc'],
    ['a=b; sid=abc; c=d', 'abc'],
    ['sid="abc"', 'abc'],
    ['sid=%61bc', 'abc'],
    ['sid = abc ', 'abc'],
    ['sid=a=b', 'a=b'],
    ['sid=abc; sid=abc', 'abc'],
    ['sid=abc; sid=abd', undefined],
    ['sid=', undefined],
    ['sid', undefined],
    ['SID=abc', undefined],
    ['xsid=abc', undefined],
    ['sid=%', undefined],
    ['', undefined],
  ])('%s is %s', (line, value) => {
    expect(cookieValue([line], 'sid')).toBe(value)
  })

  it('may stand on several lines', () => {
    expect(cookieValue(['a=b', 'sid=abc'], 'sid')).toBe('abc')
    expect(cookieValue(['sid=abd', 'sid=abc'], 'sid')).toBeUndefined()
    expect(cookieValue(undefined, 'sid')).toBeUndefined()
  })
})

describe('a query parameter', () => {
  it.each([
    ['q=abc', 'abc'],
    ['a=b&q=abc&c', 'abc'],
    ['%71=abc', 'abc'],
    ['q=a+b%20c', 'a b c'],
    ['q=abc&q=abc', 'abc'],
    ['q=abc&q=%61bc', 'abc'],
    ['q=abc&q=abd', undefined],
    ['q=abc&q', undefined],
    ['q=%', undefined],
    ['q=%ff', undefined],
    ['q=', undefined],
    ['q', undefined],
    ['Q=abc', undefined],
    ['', undefined],
    ['&&q=a=b&', 'a=b'],
  ])('%s is %s', (query, value) => {
    expect(queryValue(query, 'q')).toBe(value)
  })

  it('reads what a form wrote', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (value, other) => {
        fc.pre(value.isWellFormed() && other.isWellFormed())
        expect(queryValue(new URLSearchParams({ other, q: value }).toString(), 'q')).toBe(value)
      }),
    )
  })
})

describe('an e-mail address', () => {
  it('has one spelling', () => {
    for (const spelling of ['josé@example.org', ' JOSÉ@example.org ', 'jose\u0301@Example.ORG', '\tjosé@example.org']) {
      expect(normalizeEmail(spelling)).toBe('josé@example.org')
    }
  })

  it('of nothing but space is missing', () => {
    expect(normalizeEmail('  ')).toBeUndefined()
  })

  it('is normal once normalised', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const once = normalizeEmail(text)
        if (once !== undefined) expect(normalizeEmail(once)).toBe(once)
      }),
    )
  })

  it('in a field is read as UTF-8 where it is', () => {
    expect(fieldText(Buffer.from('josé', 'utf8').toString('latin1'))).toBe('josé')
    expect(fieldText('jos\u00e9')).toBe('jos\u00e9')
    expect(fieldText('日本')).toBe('日本')
  })
})
