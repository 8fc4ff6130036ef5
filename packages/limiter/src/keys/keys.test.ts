import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeParts, encodeValue, hashValue, MAX_VALUE_BYTES, NAME } from './index.ts'

/** Any sequence of UTF-16 code units, lone surrogates too, from empty to well beyond what is kept plain. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 140 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 80 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom('', ':', '%', '%3A', '~', '{', '}', '{}', '*', '\0', '\r\n', 'undefined', '\ud800', '\udfff\ud800'),
)

describe("a caller's value in a key", () => {
  it.each([
    ['', ''],
    ['ann@example.org', 'ann@example.org'],
    ['2001:db8::', '2001%3Adb8%3A%3A'],
    ['a b', 'a%20b'],
    ['100%', '100%25'],
    ['~root', '%7Eroot'],
    ['{tag}*', '%7Btag%7D%2A'],
    ['\0\r\n', '%00%0D%0A'],
    ['é', '%C3%A9'],
    ['e\u0301', 'e%CC%81'],
    ['日本', '%E6%97%A5%E6%9C%AC'],
    ['😀', '%F0%9F%98%80'],
  ])('%j is %s', (value, text) => {
    expect(encodeValue(value)).toBe(text)
    expect(decodeURIComponent(text)).toBe(value)
  })

  it('is another text for every other value (fluojs/fluo#385, better-auth PR#7300)', () => {
    fc.assert(
      fc.property(anyText, anyText, (one, other) => {
        expect(encodeValue(one) === encodeValue(other)).toBe(one === other)
        expect(hashValue(one) === hashValue(other)).toBe(one === other)
      }),
      { numRuns: 2000 },
    )
  })

  it('is another list for every other list, whatever stands between the parts', () => {
    const list = fc.array(anyText, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(list, list, (one, other) => {
        expect(encodeParts(one) === encodeParts(other)).toBe(JSON.stringify(one) === JSON.stringify(other))
      }),
      {
        numRuns: 2000,
        examples: [
          [
            ['a:b', 'c'],
            ['a', 'b:c'],
          ],
          [
            ['1', '23'],
            ['12', '3'],
          ],
          [['a', ''], ['a']],
        ],
      },
    )
  })

  it('holds nothing that separates keys, tags a cluster slot, or begins like the keys of Headgate itself', () => {
    fc.assert(
      fc.property(anyText, (value) => {
        expect(encodeValue(value)).toMatch(/^(?:(?:[A-Za-z0-9._@-]|%[0-9A-F]{2})*|~[A-Za-z0-9_-]{43})$/)
      }),
      { numRuns: 2000 },
    )
  })

  it('is its hash over 128 bytes of UTF-8, in full: long values never share a prefix (ashita-ai/tessera#185)', () => {
    const [plain, long] = ['x'.repeat(MAX_VALUE_BYTES), 'x'.repeat(MAX_VALUE_BYTES + 1)]
    expect([encodeValue(plain), encodeValue(long)]).toEqual([plain, hashValue(long)])
    expect([encodeValue('é'.repeat(64)).length, encodeValue('é'.repeat(65))]).toEqual([
      64 * 6,
      hashValue('é'.repeat(65)),
    ])
    expect(encodeValue(`${long}a`)).not.toBe(encodeValue(`${long}b`))
  })

  it('is hashed with SHA-256, or with HMAC-SHA-256 under a secret', () => {
    expect(hashValue('ann')).toBe(`~${createHash('sha256').update('ann').digest('base64url')}`)
    expect(hashValue('ann', 'pepper')).toBe(`~${createHmac('sha256', 'pepper').update('ann').digest('base64url')}`)
    expect(encodeValue('x'.repeat(200), 'pepper')).toBe(hashValue('x'.repeat(200), 'pepper'))
    expect(encodeValue('ann', 'pepper')).toBe('ann')
  })
})

it.each([
  ['login', true],
  ['0', true],
  ['a.b_c-D9', true],
  ['x'.repeat(64), true],
  ['x'.repeat(65), false],
  ['', false],
  ['-a', false],
  ['.a', false],
  ['a:b', false],
  ['a b', false],
  ['ä', false],
  ['a\n', false],
])('%j is a name: %s', (name, is) => expect(NAME.test(name)).toBe(is))
