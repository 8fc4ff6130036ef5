import { describe, expect, it } from 'vitest'
import {
  type CheckItem,
  concurrency,
  createEngine,
  createLimiter,
  fixedWindow,
  InvalidArgumentError,
  leakyBucket,
  memoryStore,
  tokenBucket,
} from './index.ts'

const bucket = tokenBucket({ limit: 10, period: '1h' })
const window = fixedWindow({ limit: 10, period: '1h' })
const line = leakyBucket({ limit: 10, period: '1h' })
const items = (cost: unknown = 1, key = 'ann'): CheckItem[] =>
  [bucket, window, line].map((limit) => ({ name: limit.algorithm, limit, key, cost: cost as number }))

/** Whatever is asked changes nothing: what was left is left. */
async function refused(call: (engine: ReturnType<typeof createEngine>) => unknown, argument: string): Promise<void> {
  const engine = createEngine({ store: memoryStore() })
  await engine.check(items(4))
  const attempt = async () => call(engine)
  await expect(attempt()).rejects.toThrow(InvalidArgumentError)
  await expect(attempt()).rejects.toMatchObject({ code: 'HEADGATE_INVALID_ARGUMENT', argument })
  const { limits } = await engine.peek(items(0))
  expect(limits.map(({ remaining }) => remaining)).toEqual([6, 6, 7])
  await engine.close()
}

const BAD_COSTS = [-1, -1e9, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 2 ** 53, null, {}, 5n, true]

describe('costs that are none (envoyproxy/ratelimit PR#802, mailgun/gubernator#156)', () => {
  it.each(BAD_COSTS)('%s is refused by every operation', async (cost) => {
    await refused((engine) => engine.check(items(cost)), 'cost')
    await refused((engine) => engine.peek(items(cost)), 'cost')
    await refused((engine) => engine.acquire(items(cost)), 'cost')
    await refused((engine) => engine.reserve(items(cost)), 'cost')
    await refused((engine) => engine.refund(items(cost)), 'cost')
    await refused(
      async (engine) =>
        (await engine.reserve(items(1), { id: 'x' })).reservation
          ?.cancel()
          .then(() => engine.reservation(items(1), 'x').commit(cost as number)),
      'cost',
    )
  })

  it.each([...BAD_COSTS, 0])('%s is refused by takeUpTo', async (most) => {
    await refused((engine) => engine.takeUpTo(items(), most as number), 'most')
  })

  it('0 only asks, whatever the operation', async () => {
    const store = memoryStore()
    const engine = createEngine({ store })
    await engine.check(items(0))
    await engine.acquire(items(0))
    const { reservation } = await engine.reserve(items(0))
    expect(await reservation?.commit(0)).toEqual({ late: false, unpaid: false })
    expect(await engine.refund(items(0))).toEqual([0, 0, 0])
    expect(store.size).toBe(0)
    for (let i = 0; i < 100; i++) await engine.peek(items(5))
    expect(store.size).toBe(0)
    await engine.close()
  })

  it('2^32 is above the capacity, and says so', async () => {
    const engine = createEngine({ store: memoryStore() })
    expect((await engine.check(items(2 ** 32))).reason).toBe('never')
    expect((await engine.reserve(items(2 ** 32))).reason).toBe('never')
    expect((await engine.acquire(items(2 ** 32))).reason).toBe('never')
    expect((await engine.takeUpTo(items(), 2 ** 32)).granted).toBe(10)
    await engine.close()
  })
})

describe('spans, ids and receipts that are none', () => {
  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5', 1e18, null])('%s is no span', async (span) => {
    const ms = span as number
    await refused((engine) => engine.reserve(items(), { holdMs: ms }), 'holdMs')
    await refused((engine) => engine.reservation(items(), 'x').extend(ms), 'holdMs')
    if (span !== 0) await refused((engine) => engine.acquire(items(), { timeoutMs: ms }), 'timeoutMs')
    if (span !== Number.POSITIVE_INFINITY)
      await refused((engine) => engine.block(items(), { durationMs: ms }), 'durationMs')
  })

  it.each(['', 5, null, {}, Number.NaN])('%s is no id', async (id) => {
    await refused((engine) => engine.reserve(items(), { id: id as string }), 'id')
    await refused((engine) => engine.reservation(items(), id as string), 'id')
    await refused((engine) => engine.refund(items(), { id: id as string }), 'id')
  })

  it('a receipt is refused that is cut, changed in form, or of another check', async () => {
    const other = createEngine({ store: memoryStore() })
    const { receipt = '' } = await other.check(items(3))
    const ofBob = (await other.check(items(3, 'bob'))).receipt as string
    const ofOne = (await other.check(items(1).slice(0, 1))).receipt as string
    const bad = [
      ...Array.from({ length: receipt.length - 1 }, (_, i) => receipt.slice(0, i)),
      `${receipt}.1-1-1`,
      receipt.toUpperCase(),
      receipt.replaceAll('-', '.'),
      `${receipt}é`,
      ofBob,
      ofOne,
      'r2.0.1-1-1',
      '__proto__',
      null,
      5,
      {},
      'x'.repeat(1_000_000),
    ].filter((one) => typeof one !== 'string' || !isWhole(one, receipt))
    const engine = createEngine({ store: memoryStore() })
    await engine.check(items(4))
    for (const one of bad) {
      await expect(engine.refund(items(3), { receipt: one as string })).rejects.toMatchObject({ argument: 'receipt' })
    }
    expect((await engine.peek(items(0))).limits.map(({ remaining }) => remaining)).toEqual([6, 6, 7])
    await Promise.all([engine.close(), other.close()])
  })

  it('a receipt with other numbers gives back no more than there is', async () => {
    const engine = createEngine({ store: memoryStore() })
    const { receipt = '' } = await engine.check(items(4))
    const forged = receipt.replaceAll(/(?<=\.)[0-9a-z]+-([0-9a-z]+)-[0-9a-z]+/g, `zzzzzzzz-$1-zzzzzzzzz`)
    await engine.refund(items(1_000_000), { receipt: forged })
    const { limits } = await engine.peek(items(0))
    for (const { remaining, capacity } of limits) expect(remaining).toBeLessThanOrEqual(capacity)
    await engine.close()
  })

  it('slots are no reservation, nor is there anything to give back of them', async () => {
    const engine = createEngine({ store: memoryStore() })
    const slots: CheckItem[] = [{ name: 'slots', limit: concurrency({ limit: 2 }), key: 'ann' }]
    const { receipt = '' } = await engine.check(slots)
    await expect(engine.reserve(slots)).rejects.toMatchObject({ argument: 'limits' })
    expect(() => engine.reservation(slots, 'x')).toThrow(InvalidArgumentError)
    expect(await engine.refund(slots, { receipt })).toEqual([0])
    expect(await engine.refund(slots)).toEqual([0])
    expect((await engine.peek(slots)).limits[0]?.remaining).toBe(1)
    await engine.close()
  })
})

it('what is asked after close is refused, whatever it is', async () => {
  const engine = createEngine({ store: memoryStore() })
  const decision = await engine.check([{ name: 'slots', limit: concurrency({ limit: 2 }), key: 'ann' }])
  const { reservation } = await engine.reserve(items())
  await engine.close()
  const calls = [
    () => engine.check(items()),
    () => engine.peek(items()),
    () => engine.takeUpTo(items(), 1),
    () => engine.acquire(items()),
    () => engine.reserve(items()),
    () => engine.refund(items()),
    () => engine.reset(items()),
    () => engine.block(items()),
    () => engine.unblock(items()),
    () => reservation?.commit(),
    () => reservation?.extend(1000),
    () => decision.release?.(),
    () => decision.renew?.(),
  ]
  for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'HEADGATE_CLOSED' })
})

it('a limiter refuses options that it does not know', async () => {
  const limiter = createLimiter({ name: 'api', store: memoryStore(), limit: bucket })
  const calls = [
    () => limiter.acquire('ann', { wait: 5 } as never),
    () => limiter.reserve('ann', { hold: 5 } as never),
    () => limiter.refund('ann', { units: 5 } as never),
    () => limiter.block('ann', { ms: 5 } as never),
  ]
  for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'HEADGATE_INVALID_ARGUMENT' })
  await limiter.close()
})

/** Cut where only the last number is shorter: still of the right form, and of less. */
function isWhole(text: string, receipt: string): boolean {
  return receipt.startsWith(text) && /^r1\.[^.]+(\.[^.-]+-[^.-]+-[^.-]+){3}$/.test(text)
}
