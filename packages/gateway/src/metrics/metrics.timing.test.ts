import type { Decision, MatchedRule } from 'headgate'
import { expect, it } from 'vitest'
import { Metrics } from './index.ts'

it('counting a request of two rules costs well under a microsecond', () => {
  const names = ['product-detail', 'login']
  const metrics = new Metrics({ version: '1.2.3' })
  metrics.apply({
    version: 'v1',
    rules: names.map((name) => ({ name, limits: [{ name: 'global' }, { name: 'user' }] })),
    gateway: { routes: [{ path: '/api/*' }] },
  })
  const rules = names.map(
    (name): MatchedRule => ({ name, headers: 'standard', disclose: false, globalLimits: ['global'] }),
  )
  const limits = names.flatMap((rule) =>
    ['global', 'user'].map((name) => {
      return {
        rule,
        name,
        limit: 5,
        capacity: 5,
        periodMs: 1000,
        remaining: 4,
        retryAfterMs: 0,
        nextMs: 1,
        resetAfterMs: 1,
      }
    }),
  )
  const allowed: Decision = {
    allowed: true,
    retryAfterMs: 0,
    delayMs: 0,
    limits,
    at: 0,
    source: 'store',
    degraded: false,
  }
  const [first, ...rest] = limits
  const refused: Decision = { ...allowed, allowed: false, limits: [{ ...first!, retryAfterMs: 200 }, ...rest] }

  const rounds = 200_000
  const perRequestUs: number[] = []
  for (let round = 0; round < 7; round++) {
    const started = performance.now()
    for (let i = 0; i < rounds; i++) {
      const outcome = i % 4 === 0 ? 'limited' : 'allowed'
      metrics.request(outcome)
      metrics.decision(outcome === 'limited' ? refused : allowed, rules, 0.0003)
      metrics.upstream('/api/*', 200, 0.02)
    }
    perRequestUs.push(((performance.now() - started) * 1000) / rounds)
  }
  perRequestUs.sort((a, b) => a - b)
  console.log(
    `counting a request: ${perRequestUs[0]?.toFixed(3)} µs at best, ${perRequestUs[3]?.toFixed(3)} µs in the middle`,
  )
  expect(perRequestUs[0]).toBeLessThan(0.8)
})
