import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sized } from '../../../../test/arbitraries.ts'
import { TOKEN_BUCKET } from './codes.ts'
import { ceilDiv, gcd, MAX_EXACT, mulDivCeil } from './exact.ts'
import { sharePeriodUs } from './params.ts'
import { drain, regrain, unitsUsed } from './token-bucket/step.ts'

const RUNS = { numRuns: 3000 }
const TOP = 2 ** 51

const ceil = (a: bigint, b: bigint) => (a + b - 1n) / b

describe('exact arithmetic agrees with BigInt', () => {
  it('divides and rounds up', () => {
    fc.assert(
      fc.property(sized(MAX_EXACT), sized(MAX_EXACT, 1), (a, b) => {
        expect(BigInt(ceilDiv(a, b))).toBe(ceil(BigInt(a), BigInt(b)))
      }),
      RUNS,
    )
  })

  it('divides and rounds up next to whole quotients', () => {
    const nearWhole = sized(MAX_EXACT, 1).chain((b) =>
      fc.tuple(sized(Math.floor(MAX_EXACT / b)), fc.constantFrom(-1, 0, 1), fc.constant(b)),
    )
    fc.assert(
      fc.property(nearWhole, ([quotient, off, b]) => {
        const a = Math.min(MAX_EXACT, Math.max(0, quotient * b + off))
        expect(BigInt(ceilDiv(a, b))).toBe(ceil(BigInt(a), BigInt(b)))
      }),
      { ...RUNS, examples: [[[1, 1, MAX_EXACT - 1]], [[MAX_EXACT, -1, 1]]] },
    )
  })

  it('multiplies and divides beyond 2^53, up to factors of 2^51', () => {
    const factors = sized(TOP, 1).chain((c) => fc.tuple(fc.integer({ min: 0, max: c - 1 }), sized(TOP), fc.constant(c)))
    fc.assert(
      fc.property(factors, ([a, b, c]) => {
        expect(BigInt(mulDivCeil(a, b, c))).toBe(ceil(BigInt(a) * BigInt(b), BigInt(c)))
      }),
      {
        ...RUNS,
        examples: [[[TOP - 1, TOP, TOP]], [[TOP - 1, TOP - 1, TOP]], [[0, TOP, 1]], [[1, 0, 2]], [[1, 1, TOP]]],
      },
    )
  })

  it('finds the greatest common divisor', () => {
    fc.assert(
      fc.property(sized(MAX_EXACT), sized(MAX_EXACT, 1), (a, b) => {
        const divisor = gcd(a, b)
        expect([a % divisor, b % divisor]).toEqual([0, 0])
        expect(gcd(a / divisor, b / divisor)).toBe(1)
      }),
    )
  })
})

describe("a bucket's step agrees with BigInt", () => {
  const states = fc.record({
    code: fc.constant(TOKEN_BUCKET),
    ahead: fc.constant(0),
    level: sized(MAX_EXACT),
    atUs: sized(MAX_EXACT),
    rate: sized(MAX_EXACT, 1),
    grain: sized(TOP, 1),
  })
  const drained = (state: { level: number; atUs: number; rate: number }, nowUs: number) => {
    const elapsed = nowUs > state.atUs ? BigInt(nowUs) - BigInt(state.atUs) : 0n
    const left = BigInt(state.level) - elapsed * BigInt(state.rate)
    return left > 0n ? left : 0n
  }

  it('drains, also where elapsed × rate is far beyond 2^53 and rounded', () => {
    fc.assert(
      fc.property(states, sized(MAX_EXACT), (state, nowUs) => {
        expect(BigInt(drain(state, nowUs))).toBe(drained(state, nowUs))
      }),
      RUNS,
    )
  })

  it('drains to the part at the instant of the last unit', () => {
    const near = fc.tuple(sized(2 ** 20, 1), sized(2 ** 32), sized(2 ** 20)).map(([rate, elapsed, rest]) => ({
      rate,
      elapsed,
      level: Math.min(MAX_EXACT, rate * elapsed + rest),
    }))
    fc.assert(
      fc.property(near, ({ rate, elapsed, level }) => {
        const state = { code: TOKEN_BUCKET, level, atUs: 1e15, rate, grain: 1, ahead: 0 }
        for (const nowUs of [1e15 + elapsed - 1, 1e15 + elapsed, 1e15 + elapsed + 1]) {
          expect(BigInt(drain(state, nowUs))).toBe(drained(state, nowUs))
        }
      }),
      RUNS,
    )
  })

  it('counts the units in use, rounded up', () => {
    fc.assert(
      fc.property(states, sized(MAX_EXACT), (state, nowUs) => {
        expect(BigInt(unitsUsed(state, nowUs))).toBe(ceil(drained(state, nowUs), BigInt(state.grain)))
      }),
      RUNS,
    )
  })

  it('carries a level to another grain, rounded up, and never past what is exhausted', () => {
    fc.assert(
      fc.property(sized(MAX_EXACT), sized(TOP, 1), sized(TOP, 1), sized(MAX_EXACT), (level, from, to, most) => {
        const exact = ceil(BigInt(level) * BigInt(to), BigInt(from))
        expect(BigInt(regrain(level, from, to, most))).toBe(exact < BigInt(most) ? exact : BigInt(most))
      }),
      RUNS,
    )
  })
})

it("rounds the period of an instance's share up, at most to 71 years", () => {
  fc.assert(
    fc.property(sized(3.16e14, 1), sized(MAX_EXACT, 1), sized(100_000, 1), (periodUs, limit, instances) => {
      const exact = ceil(BigInt(periodUs) * BigInt(instances), BigInt(limit))
      expect(BigInt(sharePeriodUs(periodUs, limit, instances))).toBe(exact < BigInt(TOP) ? exact : BigInt(TOP))
    }),
    RUNS,
  )
})
