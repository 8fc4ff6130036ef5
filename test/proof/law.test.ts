import { describe, expect, it } from 'vitest'
import { excess } from './law.ts'

describe('the checker of the law', () => {
  it('finds nothing where a burst is followed by the rate', () => {
    const at = [0, 0, 0, 500_000, 1_000_000]
    expect(excess(at, 2, 3)).toBe(0)
  })

  it('finds one unit too many in any interval, also behind a quiet time', () => {
    expect(excess([0, 0, 0, 0], 2, 3)).toBe(1)
    expect(excess([0, 9_000_000, 9_000_000, 9_000_000, 9_000_001], 2, 3)).toBeCloseTo(1, 4)
  })

  it('is not fooled by what was left over before', () => {
    expect(excess([0, 5_000_000, 5_000_000, 5_000_000], 1, 3)).toBe(0)
  })
})
