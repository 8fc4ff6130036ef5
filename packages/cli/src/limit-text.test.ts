import type { LimitStatus } from 'headgate'
import { describe, expect, it } from 'vitest'
import { leftText, stateText, unusedText, windowEnd } from './limit-text.ts'

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

const AT = Date.parse('2026-11-30T13:00:00Z')
const HOUR = 3_600_000

describe('what a limit holds, in the words of its algorithm', () => {
  it.each([
    ['token-bucket', { remaining: 3, nextMs: 180, resetAfterMs: 400 }, '3 of 5 left, more in 180ms', 'unused in 400ms'],
    ['token-bucket', {}, '5 of 5 left', 'unused'],
    [
      'sliding-window',
      { remaining: 3, nextMs: 180, resetAfterMs: 400 },
      '3 of 5 left, more in 180ms',
      'unused in 400ms',
    ],
    ['fixed-window', { remaining: 3, nextMs: 9000, resetAfterMs: 9000 }, '3 of 5 left, window ends in 9s', ''],
    ['fixed-window', {}, '5 of 5 left', 'unused'],
    ['leaky-bucket', {}, '0 of 5 in line', 'unused'],
    ['leaky-bucket', { remaining: 3, nextMs: 180, resetAfterMs: 400 }, '2 of 5 in line, the next waits 400ms', ''],
    [
      'leaky-bucket',
      { remaining: 0, nextMs: 180, retryAfterMs: 180, resetAfterMs: 900 },
      '5 of 5 in line, a place in 180ms',
      '',
    ],
    ['concurrency', {}, '0 of 5 held', 'unused'],
    [
      'concurrency',
      { remaining: 3, nextMs: 900, resetAfterMs: 9000 },
      '2 of 5 held, the first lapses in 900ms',
      'free in 9s at the latest',
    ],
    ['token-bucket', { retryAfterMs: 9000, blocked: true as const }, 'blocked, 5 of 5 left', 'unused'],
    ['concurrency', { retryAfterMs: 9000, blocked: true as const }, 'blocked, 0 of 5 held', 'unused'],
  ])('%s %j: %s', (algorithm, numbers, state, end) => {
    const status = { ...unused, ...numbers }
    const written = { algorithm, text: '' }
    expect([stateText(status, written, AT), unusedText(status, written)]).toEqual([state, end])
  })

  it('says when a calendar window ends, by the clocks of its zone', () => {
    const status = { ...unused, remaining: 3, nextMs: 3 * HOUR, resetAfterMs: 3 * HOUR }
    const written = { algorithm: 'fixed-window', text: '', timeZone: 'Asia/Shanghai' }
    expect(stateText(status, written, AT)).toBe('3 of 5 left, window ends in 3h at 2026-12-01 00:00:00 Asia/Shanghai')
    expect(windowEnd(status, written, AT)).toBe('2026-11-30T16:00:00.000Z')
  })

  it('says that no store knows what each instance counts for itself', () => {
    const written = { algorithm: 'token-bucket', text: '', scope: 'instance' as const }
    expect(stateText(unused, written, AT)).toBe('each instance counts for itself, not in the store')
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
