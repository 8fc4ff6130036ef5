/**
 * Integer arithmetic that stays exact in IEEE doubles. `exact.lua` holds the same functions for the
 * script: same names, same order, same steps.
 */

/** The largest integer that a level, an instant or a count may reach. */
export const MAX_EXACT = Number.MAX_SAFE_INTEGER

/**
 * ⌈a / b⌉ for integers 0 ≤ a, 1 ≤ b below 2^53. The rounded quotient never lands on a wrong integer:
 * next to a quotient k the doubles lie closer than 1/b, since k · b is below 2^53.
 */
export function ceilDiv(a: number, b: number): number {
  return Math.ceil(a / b)
}

/**
 * ⌈a · b / c⌉ for integers 0 ≤ a < c ≤ 2^51 and 0 ≤ b ≤ 2^51, also where a · b is beyond 2^53:
 * long multiplication in base 2, reduced by c at each step.
 */
export function mulDivCeil(a: number, b: number, c: number): number {
  // 1. the highest power of two in b
  let bit = 1
  while (bit * 2 <= b) bit = bit * 2
  // 2. quotient and remainder, one bit of b after the other
  let quotient = 0
  let rest = 0
  while (bit >= 1) {
    rest = rest * 2
    quotient = quotient * 2
    if (b >= bit) {
      rest = rest + a
      b = b - bit
    }
    while (rest >= c) {
      rest = rest - c
      quotient = quotient + 1
    }
    bit = bit / 2
  }
  // 3. what is left rounds up
  return rest > 0 ? quotient + 1 : quotient
}

/** The greatest common divisor of integers a ≥ 0, b ≥ 1. */
export function gcd(a: number, b: number): number {
  while (a > 0) [a, b] = [b % a, a]
  return b
}
