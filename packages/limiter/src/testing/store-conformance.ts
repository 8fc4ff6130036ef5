import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { slidingLog } from '../algorithms/sliding-log/index.ts'
import { slidingWindow } from '../algorithms/sliding-window/index.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import type { Decision } from '../decision.ts'
import {
  type Bench,
  type ConformanceCase,
  conformanceCase,
  expectDecision,
  item,
  type OpenStore,
} from './conformance-case.ts'
import { sameAsMemory } from './same-as-memory.ts'

export type { ConformanceCase, OpenStore } from './conformance-case.ts'

/**
 * What every store of Headgate's promises, as cases for any test runner:
 *
 *     for (const { name, run } of storeConformance((clock) => memoryStore({ clock }))) it(name, run)
 *
 * @param open called once a case; each store must begin empty, with time from the clock it is given
 */
export function storeConformance(open: OpenStore): ConformanceCase[] {
  return Object.entries(cases).map(([name, body]) => conformanceCase(open, name, body))
}

const fivePerSecond = tokenBucket({ limit: 5, period: '1s' })
const window = fixedWindow({ limit: 5, period: '10s' })

const cases: Record<string, (bench: Bench) => Promise<void>> = {
  'counts a token bucket, and gives it back as time passes': async ({ clock, take }) => {
    expectDecision(await take(fivePerSecond, 3), true, 2, 0)
    expectDecision(await take(fivePerSecond, 3), false, 2, 200)
    expectDecision(await take(fivePerSecond, 2), true, 0, 0)
    clock.advance(199.999)
    expectDecision(await take(fivePerSecond), false, 0, 0.001)
    clock.advance(0.001)
    expectDecision(await take(fivePerSecond), true, 0, 0)
    clock.advance(1000)
    expectDecision(await take(fivePerSecond, 5), true, 0, 0)
  },

  'counts a fixed window, from the clock and from the first hit': async ({ clock, take }) => {
    const firstHit = fixedWindow({ limit: 5, period: '10s', align: 'first-hit' })
    clock.advance(4000)
    expectDecision(await take(window, 5), true, 0, 0)
    expectDecision(await take(firstHit, 5, 'bob'), true, 0, 0)
    expectDecision(await take(window), false, 0, 6000)
    expectDecision(await take(firstHit, 1, 'bob'), false, 0, 10_000)
    clock.advance(6000)
    expectDecision(await take(window, 5), true, 0, 0)
    expectDecision(await take(firstHit, 1, 'bob'), false, 0, 4000)
  },

  'counts a sliding window, whose oldest slice leaves by parts, or as a whole': async ({ clock, take }) => {
    const weighted = slidingWindow({ limit: 10, period: '10s', slices: 5 })
    const strict = slidingWindow({ limit: 10, period: '10s', slices: 5, strict: true })
    // From the beginning of a slice.
    clock.advanceUs(2_000_000 - (clock() % 2_000_000))
    expectDecision(await take(weighted, 10), true, 0, 0)
    expectDecision(await take(strict, 10, 'bob'), true, 0, 0)
    expectDecision(await take(weighted, 5), false, 0, 10_999.999)
    expectDecision(await take(strict, 5, 'bob'), false, 0, 11_999.999)
    clock.advanceUs(10_999_999)
    expectDecision(await take(weighted, 5), true, 0, 0)
    expectDecision(await take(strict, 5, 'bob'), false, 0, 1000)
  },

  'counts a sliding log, each unit for one period': async ({ clock, take }) => {
    const log = slidingLog({ limit: 5, period: '10s' })
    expectDecision(await take(log, 2), true, 3, 0)
    clock.advance(4000)
    expectDecision(await take(log, 3), true, 0, 0)
    expectDecision(await take(log, 3), false, 0, 10_000)
    expectDecision(await take(log, 2), false, 0, 6000)
    clock.advance(6000)
    expectDecision(await take(log, 2), true, 0, 0)
    expectDecision(await take(log, 1), false, 0, 4000)
  },

  'says when it decided, by its own clock, to the microsecond': async ({ clock, take }) => {
    clock.advanceUs(30)
    const first = await take(fivePerSecond)
    clock.advanceUs(30)
    const second = await take(fivePerSecond)
    deepStrictEqual([Math.round(first.at * 1000), Math.round(second.at * 1000)], [clock() - 30, clock()])
  },

  'peeks without a trace': async ({ clock, take, peek }) => {
    for (let i = 0; i < 100; i++) expectDecision(await peek(fivePerSecond), true, 5, 0)
    await take(window, 4)
    for (let i = 0; i < 100; i++) expectDecision(await peek(window, 2), false, 1)
    clock.advance(10_000)
    expectDecision(await peek(window, 5), true, 5, 0)
    expectDecision(await take(window, 5), true, 0, 0)
  },

  'takes a cost of 0 for a question': async ({ take }) => {
    expectDecision(await take(fivePerSecond, 0), true, 5, 0)
    expectDecision(await take(fivePerSecond, 5), true, 0, 0)
    expectDecision(await take(fivePerSecond, 0), true, 0, 0)
  },

  'refuses a cost that can never succeed at once, and changes nothing': async ({ take }) => {
    for (const limit of [fivePerSecond, window]) {
      const key = limit.algorithm
      const refused = await take(limit, 6, key)
      expectDecision(refused, false, 5, Number.POSITIVE_INFINITY)
      equal(refused.reason, 'never')
      await take(limit, Number.MAX_SAFE_INTEGER, key)
      expectDecision(await take(limit, 5, key), true, 0, 0)
    }
  },

  'charges nothing by a refusal': async ({ clock, take }) => {
    const slow = tokenBucket({ limit: 1, period: '10s', burst: 5 })
    expectDecision(await take(slow, 3), true, 2)
    for (let i = 0; i < 20; i++) expectDecision(await take(slow, 5), false, 2, 30_000)
    expectDecision(await take(slow, 2), true, 0)
    clock.advance(10_000)
    expectDecision(await take(slow), true, 0)
  },

  'refuses all under a limit of 0': async ({ take, peek }) => {
    for (const none of [tokenBucket({ limit: 0, period: '1s' }), fixedWindow({ limit: 0, period: '1s' })]) {
      for (const decision of [await take(none), await take(none, 0), await peek(none)]) {
        expectDecision(decision, false, 0, Number.POSITIVE_INFINITY)
      }
    }
  },

  'forgets what is reset, and nothing else': async ({ engine, take, peek }) => {
    await take(fivePerSecond, 5)
    await take(fivePerSecond, 4, 'bob')
    await engine.reset([item(fivePerSecond), item(window, 1, 'nobody')])
    expectDecision(await peek(fivePerSecond), true, 5)
    expectDecision(await peek(fivePerSecond, 1, 'bob'), true, 1)
  },

  'charges several limits together or none of them, and names the longest wait': async ({ engine, peek }) => {
    const minute = tokenBucket({ limit: 10, period: '1m' })
    const halfHour = tokenBucket({ limit: 30, period: '30m' })
    const check = (cost: number) =>
      engine.check([item(minute, cost, 'ann', 'minute'), item(halfHour, cost, 'ann', 'half-hour')])
    equal((await check(8)).allowed, true)
    const refused = await check(3)
    deepStrictEqual(
      [refused.allowed, refused.rule, refused.limitedBy, refused.retryAfterMs],
      [false, 'conformance', 'minute', 6000],
    )
    deepStrictEqual(
      refused.limits.map(({ name, remaining }) => [name, remaining]),
      [
        ['minute', 2],
        ['half-hour', 22],
      ],
    )
    const both = await engine.peek([item(minute, 3, 'ann', 'minute'), item(halfHour, 23, 'ann', 'half-hour')])
    deepStrictEqual([both.limitedBy, both.retryAfterMs], ['half-hour', 60_000])
    expectDecision(await peek(minute, 1), true, 10)
  },

  'admits exactly what there is to a thousand who ask at once': async ({ take }) => {
    const limits = [1, 2, 10, 500].map((limit) => tokenBucket({ limit, period: '365d' }))
    for (const limit of [...limits, fixedWindow({ limit: 100, period: '365d' })]) {
      const decisions = await Promise.all(Array.from({ length: 1000 }, () => take(limit, 1, `of ${limit.wire}`)))
      const left = decisions.filter(({ allowed }) => allowed).map(({ limits }) => limits[0]?.remaining)
      deepStrictEqual(
        left,
        Array.from({ length: limit.limit }, (_, i) => limit.limit - 1 - i),
      )
      ok(decisions.every(({ allowed, limits }) => allowed || limits[0]?.remaining === 0))
    }
  },

  'keeps every counter by itself: keys, limits, rules': async ({ engine, take, peek }) => {
    const strange = [
      '',
      ' ',
      'ann:bob',
      'a\0b',
      '\r\n',
      '{x}',
      '*',
      '%',
      '~',
      'é',
      'e\u0301',
      '\ud800',
      'x'.repeat(300),
    ]
    for (const key of strange) expectDecision(await take(fivePerSecond, 1, key), true, 4)
    for (const key of strange) expectDecision(await peek(fivePerSecond, 1, key), true, 4)
    const elsewhere = [{ name: 'conformance', limit: fivePerSecond, key: '' }]
    equal((await engine.check(elsewhere)).limits[0]?.remaining, 4)
    const composite = [{ rule: 'conformance', name: 'limit', limit: fivePerSecond, key: ['ann', 'bob'] }]
    equal((await engine.check(composite)).limits[0]?.remaining, 4)
  },

  'keeps what is used while the numbers change, and the algorithm': async ({ take, peek }) => {
    const perMinute = (limit: number) => tokenBucket({ limit, period: '1m' })
    await take(perMinute(100), 80)
    expectDecision(await take(perMinute(50)), false, 0)
    expectDecision(await peek(perMinute(200)), true, 120)
    expectDecision(await take(fixedWindow({ limit: 100, period: '1m' })), true, 19)
    expectDecision(await take(perMinute(200)), true, 118)
  },

  'refuses nobody for the length of a step of its clock': async ({ clock, take }) => {
    for (const limit of [fivePerSecond, window]) {
      const key = limit.algorithm
      expectDecision(await take(limit, 5, key), true, 0)
      clock.advance(-3_600_000)
      const refused = await take(limit, 1, key)
      ok(refused.retryAfterMs <= limit.periodUs / 1000)
      clock.advance(refused.retryAfterMs)
      equal((await take(limit, 1, key)).allowed, true)
      clock.advance(3_600_000)
      expectDecision(await take(limit, 5, key), true, 0)
    }
  },

  'decides a long random trace as the memory store does, to the last microsecond': sameAsMemory,

  'answers everything that was asked together, each in its turn': async ({ take, peek }) => {
    const asked: Promise<Decision>[] = []
    for (let i = 0; i < 300; i++) asked.push(i % 3 === 0 ? peek(window, 1, `${i % 7}`) : take(window, 1, `${i % 7}`))
    const decisions = await Promise.all(asked)
    equal(decisions.filter(({ allowed }, i) => allowed && i % 3 !== 0).length, 7 * 5)
  },
}
