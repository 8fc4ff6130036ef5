import { describe, expect, it } from 'vitest'
import { durationUs } from './duration.ts'
import { InvalidArgumentError } from './errors.ts'

describe('a duration', () => {
  it.each([
    ['250ms', 250_000],
    ['1s', 1_000_000],
    ['90s', 90_000_000],
    ['1m', 60_000_000],
    ['1h', 3_600_000_000],
    ['1d', 86_400_000_000],
    ['1w', 604_800_000_000],
    ['007s', 7_000_000],
    [1, 1000],
    [0.001, 1],
    [1500, 1_500_000],
    [0.125, 125],
    [1.001, 1001],
    [4.35, 4350],
  ])('%j is %d µs', (duration, us) => expect(durationUs(duration, 'period')).toBe(us))

  it.each([
    '',
    ' 1s',
    '1s ',
    '1 s',
    's',
    '1',
    '0s',
    '-1s',
    '+1s',
    '1.5s',
    '1e3s',
    '1S',
    '1sec',
    '1y',
    '0x1s',
    '١s',
    '9007199254740992ms',
    '999999999999999w',
    0,
    -1,
    0.0001,
    1.0005e-3,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    null,
    undefined,
    true,
    [],
    {},
  ])('%j is none, and the error names the argument and the way out', (bad) => {
    const read = () => durationUs(bad as string, 'period')
    expect(read).toThrow(InvalidArgumentError)
    expect(read).toThrow(
      /^period: .* is not a duration; write '250ms', '1s', '1m', '1h', '1d', or a positive number of milliseconds$/,
    )
  })
})
