import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createEngine, fixedWindow, memoryStore, tokenBucket } from '../index.ts'
import { rateLimitFields } from './fields.ts'
import { problemBody } from './problem.ts'

const RULE = { name: 'api', headers: 'both', disclose: true, globalLimits: [] } as const
const START_US = 1_900_000_000_123_457

const limits = fc
  .record({
    limit: fc.integer({ min: 1, max: 1000 }),
    periodMs: fc.constantFrom(250, 1000, 1500, 60_000, 3_600_000),
    burst: fc.integer({ min: 1, max: 1000 }),
    kind: fc.constantFrom('bucket', 'clock', 'first-hit'),
  })
  .map(({ limit, periodMs, burst, kind }) =>
    kind === 'bucket'
      ? tokenBucket({ limit, period: periodMs, burst })
      : fixedWindow({ limit, period: periodMs, align: kind as 'clock' }),
  )

async function refuse(limit: ReturnType<typeof tokenBucket>, cost: number) {
  let nowUs = START_US
  const engine = createEngine({ store: memoryStore({ clock: () => nowUs }) })
  const ask = () => engine.check([{ rule: 'api', name: 'user', limit, key: 'ann', cost }])
  let decision = await ask()
  while (decision.allowed) decision = await ask()
  return { decision, ask, at: (us: number) => (nowUs = START_US + us) }
}

describe('an answer to a refused caller', () => {
  it('tells a wait that is long enough, and whose exact form is no longer than needed (SpaceTradersAPI#24)', async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.double({ min: 0, max: 1, noNaN: true }), async (limit, share) => {
        const cost = Math.max(1, Math.floor(share * limit.capacity))
        const { decision, ask, at } = await refuse(limit, cost)
        const fields = new Map(rateLimitFields(decision, [RULE], () => START_US / 1000))
        const waitSeconds = fields.get('Retry-After') ?? ''
        expect(waitSeconds).toMatch(/^[1-9]\d*$/)
        const { retryAfterMs } = JSON.parse(problemBody(decision)) as { retryAfterMs: number }
        at(Math.round((retryAfterMs - 1) * 1000))
        if (retryAfterMs > 1) expect((await ask()).allowed).toBe(false)
        at(Math.round(retryAfterMs * 1000))
        expect((await ask()).allowed).toBe(true)
      }),
    )
  })

  it('promises whole seconds after which the caller is let in (benwis/tower-governor#65)', async () => {
    await fc.assert(
      fc.asyncProperty(limits, async (limit) => {
        const { decision, ask, at } = await refuse(limit, 1)
        at(Number(new Map(rateLimitFields(decision, [RULE])).get('Retry-After')) * 1_000_000)
        expect((await ask()).allowed).toBe(true)
      }),
    )
  })

  it('carries a reset that is not in the past and not beyond the budget (tj/node-ratelimiter#11)', async () => {
    await fc.assert(
      fc.asyncProperty(limits, async (limit) => {
        const { decision } = await refuse(limit, 1)
        const nowMs = START_US / 1000
        const reset = Number(new Map(rateLimitFields(decision, [RULE], () => nowMs)).get('X-RateLimit-Reset'))
        const fullMs = Math.max(limit.periodUs, (limit.capacity / limit.limit) * limit.periodUs) / 1000
        expect(reset * 1000).toBeGreaterThanOrEqual(nowMs)
        expect(reset * 1000).toBeLessThanOrEqual(nowMs + fullMs + 1001)
      }),
    )
  })
})
