import { expect, it } from 'vitest'
import { traceLimit } from '../../../../../test/traced-limit.ts'
import { concurrency } from './index.ts'

it('tells how long the new ttl holds where a rule shortened it, and lets slots go by then', async () => {
  const traced = traceLimit(concurrency({ limit: 2, ttl: '1h' }))
  await traced.check(2)
  const shorter = concurrency({ limit: 2, ttl: '1s' })
  for (let i = 0; i < 2; i++) {
    const refused = await traced.check(1, shorter)
    expect([refused.allowed, refused.retryAfterMs]).toEqual([false, 1000])
  }
  traced.clock.advance(999.999)
  expect((await traced.check(1, shorter)).allowed).toBe(false)
  traced.clock.advance(0.001)
  expect((await traced.check(2, shorter)).allowed).toBe(true)
})

it('holds nobody for the length of a step of the clock', async () => {
  const limit = concurrency({ limit: 1, ttl: '10s' })
  const traced = traceLimit(limit)
  await traced.check()
  traced.clock.advance(-3_600_000)
  const refused = await traced.check()
  expect([refused.allowed, refused.retryAfterMs]).toEqual([false, 10_000])
  traced.clock.advance(10_000)
  expect((await traced.check()).allowed).toBe(true)
})
