import { createEngine, memoryStore, tokenBucket } from 'headgate'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../fresh-build.ts'
import { type RedisServer, startRedis } from '../redis.ts'
import { type Fleet, type Logged, startFleet } from './fleet.ts'
import { admittedAt, excess, spanOf } from './law.ts'
import { type Sender, type Sent, sendFor } from './load.ts'

const SECONDS = 10
const RATE = 800
const BURST = 120
const USER_RATE = 5

const detail = (rate: number, user: (n: number) => string): Sender => ({ rate, path: '/api/product/detail', user })
/** A process that just started is slow; it learns on another rule. */
const warmUp = (fleet: Fleet) =>
  sendFor(2, fleet.ports, [{ rate: 1000, path: '/api/search', user: (n) => `early${n}` }])
const ofDetail = (decision: Logged) => decision.rule === 'product-detail'

let redis: RedisServer
beforeAll(async () => {
  assertFreshBuild()
  redis = await startRedis()
})
afterAll(() => redis.stop())

describe('four gateways on one Redis, at three times the limit, with SCRIPT FLUSH in the middle', () => {
  let sent: Sent
  let decisions: Logged[]
  let fleet: Fleet

  beforeAll(async () => {
    await redis.command('FLUSHALL')
    fleet = await startFleet(4, redis.url)
    await warmUp(fleet)
    const flush = setTimeout(() => void redis.command('SCRIPT', 'FLUSH'), (SECONDS * 1000) / 2)
    const answers = await sendFor(SECONDS, fleet.ports, [detail(3 * RATE, (n) => `u${(n * 7919) % 1500}`)])
    clearTimeout(flush)
    sent = answers[0] as Sent
    decisions = (await fleet.finish()).filter(ofDetail)
  }, 120_000)

  it('admits between 0.97 and 1.00 of burst + rate × time over the run', () => {
    const most = BURST + RATE * spanOf(decisions)
    const share = sent.allowed / most
    console.log(
      `admitted ${sent.allowed} of ${sent.allowed + sent.refused}; law ${most.toFixed(0)}; share ${share.toFixed(4)}`,
    )
    expect(share).toBeGreaterThanOrEqual(0.97)
    expect(share).toBeLessThanOrEqual(1)
  })

  it('is never above the law in any interval, by the instants of the decisions', () => {
    expect(
      excess(
        admittedAt(decisions, () => true),
        RATE,
        BURST,
      ),
    ).toBeLessThanOrEqual(0)
    for (const user of new Set(decisions.map((decision) => decision.user))) {
      expect(
        excess(
          admittedAt(decisions, (decision) => decision.user === user),
          USER_RATE,
          USER_RATE,
        ),
      ).toBeLessThanOrEqual(0)
    }
  })

  it('surfaces nothing of the SCRIPT FLUSH: every request is answered, every decision is the store’s', () => {
    expect(sent.failed).toBe(0)
    expect(decisions).toHaveLength(3 * RATE * SECONDS)
    expect(new Set(decisions.map((decision) => decision.source))).toEqual(new Set(['store']))
  })

  it('forwards exactly what it admits', () => {
    expect(sent.allowed).toBe(decisions.filter((decision) => decision.allowed).length)
  })

  it('decides as the store in memory does on the same trace', async () => {
    let nowUs = 0
    const engine = createEngine({ store: memoryStore({ clock: () => nowUs }) })
    const global = tokenBucket({ limit: RATE, period: '1s', burst: BURST })
    const each = tokenBucket({ limit: USER_RATE, period: '1s' })
    let different = 0
    for (const { atUs, allowed, user, limitedBy } of decisions) {
      nowUs = atUs
      const decision = await engine.check([
        { rule: 'product-detail', name: 'global', limit: global, key: '' },
        { rule: 'product-detail', name: 'user', limit: each, key: user as string },
      ])
      if (decision.allowed !== allowed || (decision.limitedBy ?? null) !== limitedBy) different += 1
    }
    expect(different).toBe(0)
  })
})

describe('one user at 2,000/s beside fifty well-behaved ones', () => {
  it('gets its five a second and takes nothing from anybody else', async () => {
    await redis.command('FLUSHALL')
    const fleet = await startFleet(4, redis.url)
    const [heavy, good, search, post] = (await sendFor(SECONDS, fleet.ports, [
      detail(2000, () => 'heavy'),
      // 50 users at 4 a second each: 200/s, all of which the limits allow.
      detail(200, (n) => `good${n % 50}`),
      { rate: 1, path: '/api/search', user: () => 'heavy' },
      { rate: 20, path: '/api/product/detail', method: 'POST', user: () => 'heavy' },
    ])) as [Sent, Sent, Sent, Sent]
    const decisions = await fleet.finish()
    const most =
      USER_RATE + USER_RATE * spanOf(decisions.filter((decision) => decision.user === 'heavy' && ofDetail(decision)))
    expect(heavy.allowed).toBeLessThanOrEqual(most)
    expect(heavy.allowed).toBeGreaterThanOrEqual(0.97 * most - 1)
    expect(good).toEqual({ allowed: 200 * SECONDS, refused: 0, failed: 0 })
    // Another rule and another method of the same user are another budget, or none.
    expect(search).toEqual({ allowed: SECONDS, refused: 0, failed: 0 })
    expect(post).toEqual({ allowed: 20 * SECONDS, refused: 0, failed: 0 })
  }, 120_000)

  it('is told apart by its address where it names nobody', async () => {
    await redis.command('FLUSHALL')
    const fleet = await startFleet(2, redis.url)
    const anonymous: Sender = { rate: 100, path: '/api/product/detail', user: () => '' }
    const [nobody, ann] = (await sendFor(3, fleet.ports, [anonymous, detail(4, () => 'ann')])) as [Sent, Sent]
    const decisions = (await fleet.finish()).filter((decision) => decision.user?.startsWith('~ip'))
    expect(nobody.allowed).toBeLessThanOrEqual(USER_RATE + USER_RATE * spanOf(decisions))
    expect(decisions).toHaveLength(100 * 3)
    expect(ann).toEqual({ allowed: 12, refused: 0, failed: 0 })
  }, 120_000)
})

describe('Redis killed and started again in the middle', () => {
  it('stays within the documented bound, and nothing surfaces', async () => {
    await redis.command('FLUSHALL')
    const fleet = await startFleet(4, redis.url)
    await warmUp(fleet)
    const AWAY_MS = 1500
    const outage = (async () => {
      await new Promise((resolve) => setTimeout(resolve, 4000))
      await redis.kill()
      await new Promise((resolve) => setTimeout(resolve, AWAY_MS))
      await redis.start()
    })()
    const [sent] = (await sendFor(SECONDS, fleet.ports, [detail(3 * RATE, (n) => `u${(n * 7919) % 1500}`)])) as [Sent]
    await outage
    const decisions = (await fleet.finish()).filter(ofDetail)
    const local = decisions.filter((decision) => decision.source === 'local')
    const store = decisions.filter((decision) => decision.source === 'store')
    const span = spanOf(decisions)
    // The time that some were cut off and others not: from the first local decision to the last, less the outage.
    const mixed = Math.max(0, spanOf(local) - AWAY_MS / 1000)
    const most = BURST + RATE * span + 2 * BURST + RATE * mixed
    console.log(`admitted ${sent.allowed}; bound ${most.toFixed(0)}; local for ${spanOf(local).toFixed(2)} s`)
    expect(sent.failed).toBe(0)
    expect(local.length).toBeGreaterThan(0)
    expect(sent.allowed).toBeLessThanOrEqual(most)
    expect(sent.allowed).toBeGreaterThanOrEqual(0.9 * RATE * span)
    // It comes back by itself: the last second is the store's alone.
    const end = decisions.at(-1)?.atUs ?? 0
    expect(store.length).toBeGreaterThan(0)
    expect(local.some((decision) => decision.atUs > end - 1_000_000)).toBe(false)
  }, 120_000)
})
