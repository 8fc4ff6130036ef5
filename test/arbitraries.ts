import fc from 'fast-check'

/** Integers of every size from `min` to `max`, their corners often: uniform ones would nearly all be huge. */
export function sized(max: number, min = 0): fc.Arbitrary<number> {
  const bits = Math.max(1, Math.ceil(Math.log2(max + 1)))
  const ofSize = fc
    .integer({ min: 1, max: bits })
    .chain((size) => fc.integer({ min, max: Math.max(min, Math.min(max, 2 ** size)) }))
  const least = fc.integer({ min, max: Math.min(max, min + 3) })
  const greatest = fc.integer({ min: Math.max(min, max - 3), max })
  return fc.oneof({ weight: 4, arbitrary: ofSize }, least, greatest)
}
