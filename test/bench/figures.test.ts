import { expect, it } from 'vitest'
import { filled } from '../../bench/figures.mjs'
import { withDenyCache } from '../../bench/model/deny-cache.mjs'
import { batchSize } from '../../bench/model/event-loop.mjs'
import { withLeases } from '../../bench/model/lease.mjs'

it('documents give the figures that bench/results and the model give; else run node bench/figures.mjs', () => {
  for (const { file, text, wanted } of filled()) expect(text, file).toBe(wanted)
})

it('a lease of the model never passes more than the law, and asks less often while the budget suffices', () => {
  const load = { instances: 5, rate: 5000, burst: 5000 }
  const within = withLeases({ ...load, asked: 4500 })
  expect(within.overshoot).toBe(0)
  expect(within.calls).toBeLessThan(0.3)
  expect(withLeases({ ...load, asked: 15_000 }).overshoot).toBe(0)
})

it('the deny cache of the model changes what is asked, not what passes', () => {
  const alone = withDenyCache({ instances: 1, asked: 1000, rate: 10 })
  const spread = withDenyCache({ instances: 1000, asked: 1000, rate: 10 })
  expect(alone.share).toBeLessThan(0.05)
  expect(spread.share).toBeGreaterThan(0.9)
  for (const { admitted } of [alone, spread]) expect(admitted).toBeCloseTo(10, 0)
})

it('checks share a call of the script the more, the busier the instance is', () => {
  expect(batchSize(100, 140)).toBeCloseTo(1, 1)
  expect(batchSize(6000, 140)).toBeGreaterThan(2)
  expect(batchSize(20_000, 140)).toBeNaN()
})
