import { describe, expect, it } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { leakyBucket } from './algorithms/leaky-bucket/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { chargesOf, deriveDecision, resultOf } from './derive.ts'
import type { Limit } from './limit.ts'
import type { Charge } from './receipt.ts'
import type { OperationName, Part } from './store.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/fake-clock.ts'

const SECOND = 1_000_000
const one = tokenBucket({ limit: 1, period: '1s' })

interface Booked {
  readonly ticket: number
  readonly charge: Charge
  readonly cost: number
  /** Its turn, in ms from the start. */
  readonly turnMs: number
}

/** One counter in memory, and a clock. */
function rig(first: Limit) {
  const clock = fakeClock()
  const startUs = clock()
  const store = memoryStore({ clock })
  let tickets = 0
  let limit = first
  const part = (cost: number, id = 0): Part => {
    return { name: 'one', limit, space: 'one:', value: '', cost, id, onStoreFailure: 'local' }
  }
  const book = (cost = 1, longestUs = 1e12): Booked | undefined => {
    const ticket = ++tickets
    const operation = { name: 'book', args: [longestUs, ticket, 1, 1] } as const
    const check = { parts: [part(cost)], peek: false, operation }
    const decision = deriveDecision(check, store.judge(check), 'store', false)
    if (!decision.allowed) return undefined
    const turnMs = ((resultOf(decision) as number) - startUs) / 1000
    return { ticket, cost, charge: chargesOf(decision)[0] as Charge, turnMs }
  }
  return {
    clock,
    book,
    turn: (cost?: number, longestUs?: number) => book(cost, longestUs)?.turnMs,
    leave: ({ ticket, cost, charge, turnMs }: Booked) => {
      const operation = { name: 'vacate', args: [ticket, charge.chargedUs, startUs + turnMs * 1000] } as const
      return store.judge({ parts: [part(cost, charge.instantUs)], peek: false, operation }).view[0]
    },
    operate: (name: OperationName, cost = 1) =>
      store.judge({ parts: [part(cost)], peek: false, operation: { name, args: [0, 0, 0] } }),
    check: () => store.judge({ parts: [part(1)], peek: false }).allowed,
    become: (other: Limit) => {
      limit = other
    },
  }
}

type Rig = ReturnType<typeof rig>
const bookAll = ({ book }: Rig, count: number) => Array.from({ length: count }, () => book() as Booked)

describe('a place in line that is given up while others stand behind it', () => {
  it('is taken by the next, and by nobody after it', () => {
    const line = rig(one)
    const [, second] = bookAll(line, 3) as [Booked, Booked, Booked]
    expect(line.leave(second)).toBe(0)
    expect([line.turn(), line.turn()]).toEqual([1000, 3000])
  })

  it('is free once, whoever says so twice, and again where the next one gives it up', () => {
    const line = rig(one)
    const [, second] = bookAll(line, 3) as [Booked, Booked, Booked]
    line.leave(second)
    line.leave(second)
    const next = line.book() as Booked
    line.leave(second)
    expect([next.turnMs, line.turn()]).toEqual([1000, 3000])
    line.leave(next)
    expect([line.turn(), line.turn()]).toEqual([1000, 4000])
  })

  it('is for a cost that it has room for, and what is left for the one after', () => {
    const line = rig(tokenBucket({ limit: 1, period: '1s', burst: 3 }))
    const [, large] = [line.book(3), line.book(2) as Booked, line.book(3)]
    line.leave(large)
    expect([line.turn(3), line.turn(1), line.turn(1), line.turn(1)]).toEqual([8000, 2000, 2000, 9000])
  })

  it('of a leaky bucket is divided turn by turn', () => {
    const line = rig(leakyBucket({ limit: 1, period: '1s', queue: 9 }))
    const [, large] = [line.book(1), line.book(3) as Booked, line.book(1)]
    expect(large.turnMs).toBe(3000)
    line.leave(large)
    expect([line.turn(), line.turn(), line.turn(), line.turn()]).toEqual([1000, 2000, 3000, 5000])
    const late = rig(leakyBucket({ limit: 1, period: '1s', queue: 3 }))
    const three = [late.book(1), late.book(2) as Booked, late.book(1)][1] as Booked
    late.leave(three)
    late.clock.advanceUs(1.5 * SECOND)
    expect([late.turn(), late.turn()]).toEqual([2000, 4000])
  })

  it('of a fixed window is in its window', () => {
    const line = rig(fixedWindow({ limit: 2, period: '1s' }))
    const booked = bookAll(line, 5)
    line.leave(booked[2] as Booked)
    line.leave(booked[3] as Booked)
    expect([line.turn(2), line.turn(), line.turn(), line.turn()]).toEqual([3000, 1000, 1000, 4000])
  })

  it('passes unused once it has come, where it comes too late for the next, and where nobody waits longer', () => {
    const line = rig(one)
    const [, second, third] = bookAll(line, 4) as [Booked, Booked, Booked, Booked]
    line.leave(second)
    line.leave(third)
    expect(line.turn(1, 0.5 * SECOND)).toBeUndefined()
    line.clock.advanceUs(1.2 * SECOND)
    expect([line.turn(1, 0.5 * SECOND), line.turn(1, 0.8 * SECOND), line.turn()]).toEqual([undefined, 2000, 4000])
  })

  it('comes back with the last one, so that who only checks has nobody before it', () => {
    const line = rig(one)
    const [, ...waiting] = bookAll(line, 4)
    expect(waiting.map((place) => line.leave(place))).toEqual([0, 0, 3])
    line.clock.advanceUs(SECOND)
    expect(line.check()).toBe(true)
  })

  it('is forgotten by a reset, a credit, a change of numbers, another algorithm and a clock that steps back', () => {
    const ends: [string, (line: Rig) => void, turns: number[]][] = [
      ['reset', (line) => line.operate('reset'), [0, 0]],
      ['credit', (line) => line.operate('refund'), [2000, 3000]],
      ['numbers', (line) => line.become(tokenBucket({ limit: 1, period: '2s' })), [3000, 5000]],
      ['algorithm', (line) => line.become(leakyBucket({ limit: 1, period: '1s', queue: 9 })), [3000, 4000]],
      ['clock', (line) => line.clock.advanceUs(-SECOND / 2), [500, 1500]],
    ]
    for (const [name, end, turns] of ends) {
      const line = rig(one)
      const [, second] = bookAll(line, 3) as [Booked, Booked, Booked]
      line.leave(second)
      end(line)
      const next = line.turn()
      // Nor is it found by one who says so once more; after a reset that gives back what was charged since, as receipts do.
      line.leave(second)
      expect([name, next, line.turn()]).toEqual([name, ...turns])
    }
  })

  it('is one of 16 at most: of more, the soonest passes unused', () => {
    const line = rig(one)
    const [, ...waiting] = bookAll(line, 22)
    for (const place of waiting.slice(0, 20)) line.leave(place)
    expect([line.turn(), line.turn()]).toEqual([5000, 6000])
  })
})
