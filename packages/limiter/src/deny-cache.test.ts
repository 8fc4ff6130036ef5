import { describe, expect, it } from 'vitest'
import { concurrency } from './algorithms/concurrency/index.ts'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { DenyCache, type DenyCacheOptions } from './deny-cache.ts'
import { InvalidArgumentError } from './errors.ts'
import type { Limit } from './limit.ts'
import type { Check, Part } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/fake-clock.ts'

const hourly = tokenBucket({ limit: 1, period: '1h' })

function rig(options: DenyCacheOptions = {}) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const nowMs = () => clock() / 1000
  const cache = new DenyCache(options, nowMs)
  const part = (value: string, limit: Limit = hourly, cost = 1): Part => ({
    name: 'l',
    limit,
    space: `${limit.wire}:`,
    value,
    cost,
    onStoreFailure: 'local',
  })
  /** Asks the store, and remembers what it says. */
  const ask = (check: Check) => {
    const verdict = store.judge(check)
    cache.keep(check, { ...verdict, view: [...verdict.view], firm: true, writtenMs: nowMs() })
    return verdict.allowed
  }
  const checkOf = (...parts: Part[]): Check => ({ parts, peek: false })
  const exhaust = (value: string) => [ask(checkOf(part(value))), ask(checkOf(part(value)))]
  cache.forgetAll(true)
  clock.advance(1)
  return { clock, cache, part, ask, checkOf, exhaust }
}

describe('A refusal', () => {
  it('is repeated with what is left of its wait, and says where it comes from', () => {
    const { clock, cache, part, checkOf, exhaust } = rig({ maxAgeMs: 3_600_000 })
    expect(exhaust('ann')).toEqual([true, false])
    clock.advance(1000)
    expect(cache.find(checkOf(part('ann')))).toMatchObject({
      allowed: false,
      reason: 'limit',
      limitedBy: 'l',
      retryAfterMs: 3_599_000,
      source: 'deny-cache',
      degraded: false,
      limits: [{ name: 'l', remaining: 0, retryAfterMs: 3_599_000, resetAfterMs: 3_599_000 }],
    })
    clock.advance(3_599_000)
    expect(cache.find(checkOf(part('ann')))).toBeUndefined()
  })

  it('is of its key, its numbers and what costs as much; for less the store is asked', () => {
    const { cache, part, checkOf, ask } = rig()
    const five = tokenBucket({ limit: 5, period: '1h' })
    ask(checkOf(part('ann', five, 3)))
    expect(ask(checkOf(part('ann', five, 3)))).toBe(false)
    const finds = (one: Part) => cache.find(checkOf(one)) !== undefined
    expect(finds(part('ann', five, 3))).toBe(true)
    expect(finds(part('ann', five, 5))).toBe(true)
    // What never fits is told so by the store.
    expect(finds(part('ann', five, 6))).toBe(false)
    expect(finds(part('ann', five, 2))).toBe(false)
    expect(finds(part('ann', five, 0))).toBe(false)
    expect(finds(part('bob', five, 3))).toBe(false)
    const same = tokenBucket({ limit: 5, period: '1h' })
    const more = { ...part('ann', five, 3), limit: tokenBucket({ limit: 6, period: '1h' }) }
    expect([finds({ ...part('ann', five, 3), limit: same }), finds(more)]).toEqual([true, false])
  })

  it('of one limit refuses for all; of the others it knows nothing', () => {
    const { cache, part, checkOf, exhaust } = rig()
    exhaust('all')
    const user = { ...part('ann', fixedWindow({ limit: 9, period: '1m' })), name: 'user' }
    expect(cache.find(checkOf(user, part('all')))).toMatchObject({
      allowed: false,
      limitedBy: 'l',
      limits: [
        { name: 'user', remaining: 9, retryAfterMs: 0 },
        { name: 'l', remaining: 0 },
      ],
    })
  })

  it('is not repeated to who only asks, does something else, or is judged with something beside', () => {
    const { cache, part, checkOf, exhaust } = rig()
    exhaust('ann')
    const check = checkOf(part('ann'))
    expect(cache.find({ ...check, peek: true })).toBeUndefined()
    expect(cache.find({ ...check, operation: { name: 'take-up-to', args: [1] } })).toBeUndefined()
    expect(cache.find({ ...check, followers: [] })).toBeUndefined()
  })

  it('of slots is never repeated', () => {
    const { cache, part, checkOf, ask } = rig()
    const slots = concurrency({ limit: 1, ttl: '1h' })
    const slot = (id: number) => ({ ...part('ann', slots), id })
    expect([ask(checkOf(slot(1))), ask(checkOf(slot(2)))]).toEqual([true, false])
    expect(cache.find(checkOf(slot(3)))).toBeUndefined()
  })

  it('ends when it is told of, and what was asked before says nothing', () => {
    const { clock, cache, part, checkOf, ask, exhaust } = rig()
    exhaust('ann')
    cache.forget('1,1,3600000000,1:ann')
    expect(cache.find(checkOf(part('ann')))).toBeUndefined()
    // Asked at the same instant, or before.
    ask(checkOf(part('ann')))
    expect(cache.find(checkOf(part('ann')))).toBeUndefined()
    clock.advance(1)
    ask(checkOf(part('ann')))
    expect(cache.find(checkOf(part('ann')))).toBeDefined()
  })

  it('is repeated for a second at most where nobody tells, and for its age where somebody does', () => {
    for (const [live, ms] of [
      [false, 1000],
      [true, 10_000],
    ] as const) {
      const { clock, cache, part, checkOf, exhaust } = rig()
      cache.forgetAll(live)
      clock.advance(1)
      exhaust('ann')
      clock.advance(ms - 1)
      expect(cache.find(checkOf(part('ann')))).toBeDefined()
      clock.advance(1)
      expect(cache.find(checkOf(part('ann')))).toBeUndefined()
    }
  })

  it('is forgotten with all others when changes were missed', () => {
    const { cache, part, checkOf, exhaust } = rig()
    exhaust('ann')
    cache.forgetAll(false)
    expect([cache.find(checkOf(part('ann'))), cache.size]).toEqual([undefined, 0])
  })

  it('in force is given up for nobody: a flood of other keys finds no room', () => {
    const { clock, cache, part, checkOf, exhaust } = rig({ maxEntries: 100 })
    for (let i = 0; i < 100; i++) exhaust(`first ${i}`)
    for (let i = 0; i < 10_000; i++) exhaust(`flood ${i}`)
    expect(cache.size).toBe(100)
    for (let i = 0; i < 100; i++) expect(cache.find(checkOf(part(`first ${i}`)))).toBeDefined()
    // When theirs are over, the others have theirs.
    clock.advance(10_000)
    for (let i = 0; i < 200; i++) exhaust(`next ${i}`)
    expect(cache.size).toBe(100)
    expect(cache.find(checkOf(part('next 0')))).toBeDefined()
  })

  it('refuses numbers that make no sense', () => {
    for (const options of [
      { maxEntries: 0 },
      { maxEntries: 1.5 },
      { maxAgeMs: 0 },
      { maxAgeMs: Number.NaN },
      { age: 1 },
    ]) {
      expect(() => new DenyCache(options as DenyCacheOptions)).toThrow(InvalidArgumentError)
    }
  })
})
