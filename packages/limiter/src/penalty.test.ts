import { describe, expect, it } from 'vitest'
import { concurrency } from './algorithms/concurrency/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createEngine } from './engine.ts'
import type { CheckItem } from './part.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/index.ts'

const penalty = { refusals: 3, withinMs: 60_000, blockMs: 600_000 }
const limit = tokenBucket({ limit: 1, period: '1s' })

function rig() {
  const clock = fakeClock()
  const engine = createEngine({ store: memoryStore({ clock }) })
  const items = (key = 'ann') => [
    { rule: 'login', name: 'user', limit, key, penalty },
    { rule: 'login', name: 'global', limit: tokenBucket({ limit: 100, period: '1s' }), key: '' },
  ]
  return { clock, engine, items, check: (key?: string) => engine.check(items(key)) }
}

describe('a penalty', () => {
  it('is refused for a limit of this process alone, whose refusals nothing would count', async () => {
    const { engine } = rig()
    const own = tokenBucket({ limit: 1, period: '1s', scope: 'instance' })
    const check = engine.check([{ rule: 'login', name: 'user', limit: own, key: 'ann', penalty }])
    await expect(check).rejects.toMatchObject({ code: 'HEADGATE_INVALID_ARGUMENT', argument: 'penalty' })
  })

  it('blocks the refused key at the last of so many refusals, and no other', async () => {
    const { clock, check } = rig()
    await check()
    for (let i = 0; i < 3; i++) expect((await check()).reason).toBe('limit')
    const blocked = await check()
    expect([blocked.reason, blocked.limitedBy, blocked.retryAfterMs]).toEqual(['blocked', 'user', 600_000])
    expect((await check('bob')).allowed).toBe(true)
    clock.advance(599_999)
    expect((await check()).reason).toBe('blocked')
    clock.advance(1)
    expect((await check()).allowed).toBe(true)
  })

  it('counts refusals within its time only', async () => {
    const { clock, check } = rig()
    await check()
    for (let i = 0; i < 2; i++) await check()
    clock.advance(60_000)
    await check()
    for (let i = 0; i < 2; i++) expect((await check()).reason).toBe('limit')
    clock.advance(1000)
    expect((await check()).allowed).toBe(true)
  })

  it('counts neither peeks nor refusals by another limit', async () => {
    const { engine, check, items } = rig()
    for (let i = 0; i < 100; i++) await check(`user${i}`)
    for (let i = 0; i < 10; i++) expect((await check('ann')).limitedBy).toBe('global')
    for (let i = 0; i < 10; i++) await engine.peek(items('user1'))
    expect((await check('ann')).reason).toBe('limit')
    expect((await engine.peek([items('ann')[0] as never])).allowed).toBe(true)
  })
})

describe('what is judged beside a check', () => {
  const items = (live: number, candidate: number) => [
    { rule: 'a', name: 'user', limit: tokenBucket({ limit: live, period: '1h' }), key: 'ann' },
    {
      rule: 'a',
      name: 'user',
      limit: tokenBucket({ limit: candidate, period: '1h' }),
      key: 'ann',
      group: 'candidate' as const,
    },
    { rule: 'b', name: 'user', limit: tokenBucket({ limit: 2, period: '1h' }), key: 'ann', group: 'shadow' as const },
  ]

  it('says what a candidate would do in its place, in both directions, and what a shadow rule would do beside', async () => {
    for (const [live, candidate, enforced, would] of [
      [3, 5, [true, true, true, false, false, false], [true, true, true, true, true, false]],
      [5, 3, [true, true, true, true, true, false], [true, true, true, false, false, false]],
    ] as const) {
      const { engine } = rig()
      const decisions = []
      for (let i = 0; i < 6; i++) decisions.push(await engine.check(items(live, candidate)))
      expect(decisions.map(({ allowed }) => allowed)).toEqual(enforced)
      expect(decisions.map(({ beside }) => beside?.[0]?.allowed)).toEqual(would)
      expect(decisions.map(({ beside }) => beside?.[1]?.allowed)).toEqual([true, true, false, false, false, false])
      expect(decisions[5]?.limits).toHaveLength(1)
    }
  })

  it('has a counter of its own: a shadow limit on one that is enforced is refused, and nothing is charged', async () => {
    const { engine } = rig()
    const [live] = items(3, 3).slice(0, 1) as [CheckItem]
    const twice = [live, { ...live, group: 'shadow' as const }]
    for (const call of [engine.check(twice), engine.acquire(twice), engine.reserve(twice), engine.peek(twice)]) {
      await expect(call).rejects.toThrow(/^items: two limits of the check share the counter "a:user:ann"/)
    }
    expect((await engine.peek([live])).limits[0]?.remaining).toBe(3)
    const apart = await engine.check([live, { ...live, key: 'bob', group: 'shadow' }])
    expect([apart.allowed, apart.beside?.[0]?.allowed]).toEqual([true, true])
  })

  it('changes nothing by a peek, and cannot hold slots or be each process’s own', async () => {
    const { engine } = rig()
    for (let i = 0; i < 5; i++) await engine.peek(items(1, 1))
    expect((await engine.check(items(1, 1))).beside?.map(({ allowed }) => allowed)).toEqual([true, true])
    const own = tokenBucket({ limit: 1, period: '1s', scope: 'instance' })
    for (const special of [concurrency({ limit: 1 }), own]) {
      const shadow = [{ rule: 'a', name: 'x', limit: special, key: '', group: 'shadow' as const }]
      await expect(engine.check(shadow)).rejects.toThrow(/^group: /)
    }
  })
})
