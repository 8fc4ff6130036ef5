import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import type { LibraryFailurePolicy } from '../decision.ts'
import { StoreUnavailableError } from '../errors.ts'
import type { Limit } from '../limit.ts'
import { type Check, type Part, StoreFault } from '../store.ts'
import { memoryStore } from '../stores/memory.ts'
import { Policy } from './policy.ts'

const AWAY = new StoreFault('connection', 'connect ECONNREFUSED', true)
const POLICIES: readonly LibraryFailurePolicy[] = ['local', 'open', 'closed', 'throw']

/** A policy over memory, with a clock that the test moves. */
function rig(instances = 1) {
  const clock = { us: 1_700_000_000_000_000 }
  const local = memoryStore({ clock: () => clock.us })
  return { clock, local, policy: new Policy(local, instances) }
}

function part(name: string, onStoreFailure: LibraryFailurePolicy, limit: Limit, cost = 1, value = 'k'): Part {
  return { rule: 'r', name, limit, space: `r:${name}:`, value, cost, onStoreFailure }
}

const check = (...parts: Part[]): Check => ({ parts, peek: false })
const ten = tokenBucket({ limit: 10, period: '1m' })

describe('Policy', () => {
  it('admits where open, refuses for want of the store where closed, throws where asked to', () => {
    const { policy } = rig()
    expect(policy.decide(check(part('a', 'open', ten)), AWAY)).toMatchObject({
      allowed: true,
      source: 'policy',
      degraded: true,
      limits: [],
    })
    const closed = policy.decide(check(part('a', 'closed', ten)), AWAY)
    expect(closed).toMatchObject({ allowed: false, reason: 'store', rule: 'r', limitedBy: 'a', source: 'policy' })
    expect(closed.retryAfterMs).toBeGreaterThan(0)
    expect(closed.retryAfterMs).toBeLessThan(60_000)
    expect(() => policy.decide(check(part('a', 'throw', ten)), AWAY)).toThrow(StoreUnavailableError)
    expect(() => policy.decide(check(part('a', 'throw', ten)), AWAY)).toThrow('connect ECONNREFUSED')
  })

  it.each(POLICIES)('says never to a cost that never fits, also where %s', (onStoreFailure) => {
    const { policy } = rig(4)
    for (const [limit, cost] of [
      [ten, 11],
      [tokenBucket({ limit: 0, period: '1s' }), 1],
      [fixedWindow({ limit: 3, period: '1s' }), 4],
    ] as const) {
      expect(policy.decide(check(part('a', onStoreFailure, limit, cost)), AWAY)).toMatchObject({
        allowed: false,
        reason: 'never',
        retryAfterMs: Number.POSITIVE_INFINITY,
        degraded: true,
      })
    }
  })

  it('lets every limit of a mixed check answer by its own policy: all must admit (law)', () => {
    const parts = fc.array(fc.record({ policy: fc.constantFrom(...POLICIES), spent: fc.boolean() }), {
      minLength: 1,
      maxLength: 5,
    })
    fc.assert(
      fc.property(parts, (given) => {
        const { policy, local } = rig()
        const limit = tokenBucket({ limit: 5, period: '1h' })
        const asked = given.map((each, i) => part(`l${i}`, each.policy, limit))
        for (const [i, each] of given.entries()) {
          if (each.spent) local.judge(check({ ...(asked[i] as Part), cost: 5 }))
        }
        const has = (name: LibraryFailurePolicy) => given.some((each) => each.policy === name)
        if (has('throw')) {
          expect(() => policy.decide(check(...asked), AWAY)).toThrow(StoreUnavailableError)
        } else {
          const decision = policy.decide(check(...asked), AWAY)
          const spent = given.some((each) => each.policy === 'local' && each.spent)
          expect(decision.allowed).toBe(!has('closed') && !spent)
          expect(decision.reason).toBe(has('closed') ? 'store' : spent ? 'limit' : undefined)
          expect(decision.degraded).toBe(true)
          expect(Number.isFinite(decision.retryAfterMs)).toBe(true)
          expect(decision.retryAfterMs > 0).toBe(!decision.allowed)
        }
        // One unit of each local limit was taken where all admitted, and nothing anywhere else.
        const admitted = !has('throw') && !has('closed') && !given.some((e) => e.policy === 'local' && e.spent)
        for (const [i, each] of given.entries()) {
          const left = local.judge({ parts: [asked[i] as Part], peek: true }).view[0] as number
          const unused = each.spent ? 5 : 0
          const taken = admitted && each.policy === 'local' ? 1 : 0
          expect(Math.ceil(left / (limit.wire[2] as number))).toBe(unused + taken)
        }
      }),
    )
  })

  it('charges nothing for what it refuses, also on the limits that had room', () => {
    const { policy } = rig()
    const roomy = part('roomy', 'local', ten)
    const tight = part('tight', 'local', tokenBucket({ limit: 1, period: '1h' }))
    expect(policy.decide(check(roomy, tight), AWAY).allowed).toBe(true)
    for (let i = 0; i < 20; i++) expect(policy.decide(check(roomy, tight), AWAY).limitedBy).toBe('tight')
    expect(policy.decide(check(roomy), AWAY).limits[0]?.remaining).toBe(8)
  })

  it('tells a caller whose cost only fits the whole budget to come back, not that it never fits', () => {
    const { policy } = rig(4)
    const waiting = part('waiting', 'local', tokenBucket({ limit: 4, period: '1h' }))
    expect(policy.decide(check(waiting), AWAY).allowed).toBe(true)
    const alone = policy.decide(check(part('big', 'local', ten, 8)), AWAY)
    expect(alone).toMatchObject({ allowed: false, reason: 'limit', limitedBy: 'big', retryAfterMs: 1000 })
    expect(alone.limits[0]?.retryAfterMs).toBe(1000)
    const both = policy.decide(check(part('big', 'local', ten, 8), waiting), AWAY)
    expect(both).toMatchObject({ allowed: false, reason: 'limit', limitedBy: 'waiting', retryAfterMs: 3_600_000 })
  })

  it('keeps all instances together within one budget, from fresh ones on (litellm#35533) (law)', () => {
    const limits = fc.record({
      limit: fc.integer({ min: 1, max: 50 }),
      periodMs: fc.integer({ min: 10, max: 100_000 }),
      burst: fc.integer({ min: 1, max: 60 }),
      instances: fc.integer({ min: 1, max: 12 }),
    })
    const steps = fc.array(fc.record({ instance: fc.nat(11), us: fc.nat(30_000_000), calls: fc.nat(40) }), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(limits, steps, ({ limit, periodMs, burst, instances }, trace) => {
        const clock = { us: 1_700_000_000_000_000 }
        const fleet = Array.from(
          { length: instances },
          () => new Policy(memoryStore({ clock: () => clock.us }), instances),
        )
        const bucket = tokenBucket({ limit, period: periodMs, burst })
        const startUs = clock.us
        let admitted = 0
        for (const { instance, us, calls } of trace) {
          clock.us += us
          for (let i = 0; i < calls; i++) {
            const policy = fleet[instance % instances] as Policy
            if (policy.decide(check(part('a', 'local', bucket)), AWAY).allowed) admitted += 1
          }
        }
        const gained = (limit * (clock.us - startUs)) / (periodMs * 1000)
        expect(admitted).toBeLessThanOrEqual(Math.max(burst, instances) + gained)
      }),
    )
  })

  it('keeps all instances together within one window', () => {
    for (const [limit, instances] of [
      [100, 4],
      [10, 3],
      [3, 3],
    ] as const) {
      const clock = { us: 1_700_000_000_000_000 }
      const fleet = Array.from(
        { length: instances },
        () => new Policy(memoryStore({ clock: () => clock.us }), instances),
      )
      const window = fixedWindow({ limit, period: '1m' })
      let admitted = 0
      for (let i = 0; i < 1000; i++) {
        const policy = fleet[i % instances] as Policy
        if (policy.decide(check(part('a', 'local', window)), AWAY).allowed) admitted += 1
      }
      expect(admitted).toBeLessThanOrEqual(limit)
      expect(admitted).toBeGreaterThan(limit - instances)
    }
  })

  it('judges windows by the time, not by timers that did not run (animir/node-rate-limiter-flexible#238)', () => {
    for (const limit of [tokenBucket({ limit: 5, period: '1s' }), fixedWindow({ limit: 5, period: '1s' })]) {
      const { policy, clock } = rig()
      const asked = check(part('a', 'local', limit))
      for (let i = 0; i < 5; i++) expect(policy.decide(asked, AWAY).allowed).toBe(true)
      const refused = policy.decide(asked, AWAY)
      expect(refused.allowed).toBe(false)
      expect(refused.retryAfterMs).toBeGreaterThan(0)
      // The process was frozen: the time went on, and no timer fired.
      clock.us += 3_600_000_000
      const after = policy.decide(asked, AWAY)
      expect(after).toMatchObject({ allowed: true, retryAfterMs: 0 })
      expect(after.limits[0]?.remaining).toBe(4)
    }
  })

  it('admits at most one more burst when the clock jumps an hour and back (ProfessionalWiki/MediaWiki-MCP-Server#557)', () => {
    const { policy, clock } = rig()
    const asked = check(part('a', 'local', tokenBucket({ limit: 1, period: '1s', burst: 5 })))
    const take = () => policy.decide(asked, AWAY)
    for (let i = 0; i < 3; i++) take()
    clock.us -= 11_000_000
    const stepped = take()
    expect(stepped.allowed).toBe(true)
    expect(stepped.limits[0]?.remaining).toBeGreaterThanOrEqual(1)
    let admitted = 0
    for (const us of [3_600_000_000, 0, -3_600_000_000, 0]) {
      clock.us += us
      for (let i = 0; i < 20; i++) {
        const decision = take()
        if (decision.allowed) admitted += 1
        else expect(decision.retryAfterMs).toBeLessThanOrEqual(5000)
      }
    }
    expect(admitted).toBeLessThanOrEqual(5 + 5 + 1)
  })
})
