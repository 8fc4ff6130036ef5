import type { LimitStatus } from 'headgate'
import { describe, expect, it } from 'vitest'
import { leftText, rateText } from './limit-text.ts'

const unused: LimitStatus = {
  name: 'user',
  limit: 5,
  capacity: 5,
  periodMs: 1000,
  remaining: 5,
  retryAfterMs: 0,
  nextMs: 0,
  resetAfterMs: 0,
}

describe('a limit reads as rule files write it', () => {
  it.each([
    [{}, '5/s'],
    [{ periodMs: 60_000 }, '5/m'],
    [{ periodMs: 300_000 }, '5/5m'],
    [{ periodMs: 604_800_000 }, '5/w'],
    [{ periodMs: 250 }, '5/250ms'],
    [{ limit: 800, capacity: 120 }, '800/s burst 120'],
  ])('%j: %s', (numbers, text) => {
    expect(rateText({ ...unused, ...numbers })).toBe(text)
  })
})

describe('what is left', () => {
  it.each([
    [{}, '5 of 5 left'],
    [{ remaining: 3, nextMs: 180 }, '3 of 5 left, more in 180ms'],
    [{ remaining: 0, nextMs: 10, retryAfterMs: 180 }, '0 of 5 left, enough in 180ms'],
    [{ limit: 0, capacity: 0, remaining: 0, retryAfterMs: Number.POSITIVE_INFINITY }, '0 of 0 left'],
  ])('%j: %s', (numbers, text) => {
    expect(leftText({ ...unused, ...numbers })).toBe(text)
  })
})
