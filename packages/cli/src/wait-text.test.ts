import fc from 'fast-check'
import { expect, test } from 'vitest'
import { waitText } from './wait-text.ts'

test.each([
  [0, '0ms'],
  [0.25, '1ms'],
  [180, '180ms'],
  [999.5, '1s'],
  [1000, '1s'],
  [1420, '1.5s'],
  [59_900, '59.9s'],
  [59_901, '1m'],
  [125_000, '2m 5s'],
  [3_600_000, '1h'],
  [3_599_500, '1h'],
  [10_800_001, '3h 1m'],
  [86_399_999, '1d'],
  [90_000_000, '1d 1h'],
  [1e15, '11574074d 2h'],
  [Number.POSITIVE_INFINITY, 'never'],
])('%d ms reads as %s', (ms, text) => {
  expect(waitText(ms)).toBe(text)
})

test('whoever waits as long as it says has waited long enough', () => {
  const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), (ms) => {
      const parts = waitText(ms).matchAll(/([\d.]+)(ms|s|m|h|d)/g)
      const told = [...parts].reduce((sum, [, n, unit]) => sum + Number(n) * (unitMs[unit as string] as number), 0)
      expect(told).toBeGreaterThanOrEqual(ms)
    }),
  )
})
