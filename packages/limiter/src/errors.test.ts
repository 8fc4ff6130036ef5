import { describe, expect, it } from 'vitest'
import { HeadgateError, InvalidArgumentError, StoreUnavailableError, show } from './errors.ts'

describe('the errors', () => {
  it('carry a code, a name, and what caused them', () => {
    const cause = new Error('cut')
    const error = new StoreUnavailableError('the store is away', { cause })
    expect(error).toMatchObject({ code: 'HEADGATE_STORE_UNAVAILABLE', name: 'StoreUnavailableError', cause })
    expect(error).toBeInstanceOf(HeadgateError)
    const invalid = new InvalidArgumentError('limits.user.burst', '0 is too little')
    expect(invalid).toMatchObject({ code: 'HEADGATE_INVALID_ARGUMENT', argument: 'limits.user.burst' })
    expect(invalid.message).toBe('limits.user.burst: 0 is too little')
  })

  it('are known by their brand, also when another copy of the library made them', () => {
    class OtherCopy extends Error {
      code = 'HEADGATE_CLOSED'
    }
    const other = Object.defineProperty(new OtherCopy(), Symbol.for('headgate.error'), { value: true })
    expect([HeadgateError.is(other), HeadgateError.is(new HeadgateError('HEADGATE_CLOSED', 'x'))]).toEqual([true, true])
    const none = [new Error('x'), null, undefined, 'HEADGATE_CLOSED', { code: 'HEADGATE_CLOSED' }]
    expect(none.map((value) => HeadgateError.is(value))).toEqual([false, false, false, false, false])
  })
})

it.each([
  ['text', '"text"'],
  ['x'.repeat(70), `"${'x'.repeat(57)}..."`],
  [5, '5'],
  [5n, '5n'],
  [Number.NaN, 'NaN'],
  [null, 'null'],
  [undefined, 'undefined'],
  [[1, 2], 'an array'],
  [{ a: 1 }, 'an object'],
  [Object.create(null), 'an object'],
  [() => 1, 'a function'],
  [Symbol('s'), 'a symbol'],
])('shows %s in a message as %s', (value, shown) => expect(show(value)).toBe(shown))
