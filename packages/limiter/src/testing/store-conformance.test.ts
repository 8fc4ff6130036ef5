import { describe, expect, it } from 'vitest'
import type { Verdict } from '../store.ts'
import { memoryStore } from '../stores/memory.ts'
import { fakeClock } from './fake-clock.ts'
import { storeConformance } from './store-conformance.ts'

describe('the memory store', () => {
  for (const { name, run } of storeConformance((clock) => memoryStore({ clock }))) it(name, run)
})

describe('the conformance suite', () => {
  it('fails a store that admits one too many', async () => {
    const lenient = storeConformance((clock) => {
      const store = memoryStore({ clock })
      const judge = store.judge.bind(store)
      let generous = 1
      store.judge = (check): Verdict => {
        const verdict = judge(check)
        return verdict.allowed || check.peek ? verdict : { ...verdict, allowed: generous-- > 0 }
      }
      return store
    })
    const outcomes = await Promise.allSettled(lenient.map(({ run }) => run()))
    expect(outcomes.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(8)
  })
})

describe('the fake clock', () => {
  it('stands still until it is moved, by ms, by µs or to an instant', () => {
    const clock = fakeClock(1000)
    expect([clock(), clock()]).toEqual([1_000_000, 1_000_000])
    clock.advance(0.5)
    clock.advanceUs(1)
    expect(clock()).toBe(1_000_501)
    clock.advance(-1000)
    expect(clock()).toBe(501)
    clock.setUs(7)
    expect(clock()).toBe(7)
  })
})
