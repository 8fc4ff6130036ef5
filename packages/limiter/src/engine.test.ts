import diagnostics from 'node:diagnostics_channel'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { createEngine, type Engine, type EngineOptions } from './engine.ts'
import { HeadgateError, InvalidArgumentError } from './errors.ts'
import type { EngineEvents } from './events.ts'
import { EncodedKey } from './keys/index.ts'
import { type CheckItem, MAX_PARTS } from './part.ts'
import { memoryStore } from './stores/memory.ts'
import { fakeClock } from './testing/index.ts'

const limit = tokenBucket({ limit: 5, period: '1h' })
const one: CheckItem = { rule: 'login', name: 'ip', limit, key: '192.0.2.1' }

function engineOn(clock = fakeClock()): Engine {
  return createEngine({ store: memoryStore({ clock }) })
}

const remaining = async (engine: Engine, item = one) => (await engine.peek([item])).limits[0]?.remaining

describe('a bad argument of a check', () => {
  const penalty = { refusals: 3, withinMs: 1000, blockMs: 1000 }
  const cases: [string, unknown, string][] = [
    ['no list', undefined, 'items'],
    ['one item without a list', one, 'items'],
    ['an empty list', [], 'items'],
    ['too many limits', Array.from({ length: MAX_PARTS + 1 }, (_, i) => ({ ...one, key: `${i}` })), 'items'],
    ['an item that is nothing', [one, null], 'items'],
    ['an item that is text', ['login'], 'items'],
    ['the same counter twice', [one, { ...one, limit: fixedWindow({ limit: 1, period: '1s' }) }], 'items'],
    ['the same counter twice among many', [...Array(40).keys(), 7].map((i) => ({ ...one, key: `${i}` })), 'items'],
    ['no name', [{ limit, key: 'ann' }], 'name'],
    ['an empty name', [{ ...one, name: '' }], 'name'],
    ['a name with a colon', [{ ...one, name: 'a:b' }], 'name'],
    ['a name that begins with +', [{ ...one, name: '+a' }], 'name'],
    ['an empty rule', [{ ...one, rule: '' }], 'rule'],
    ['null for a rule', [{ ...one, rule: null }], 'rule'],
    ['a rule with a brace', [{ ...one, rule: '{a}' }], 'rule'],
    ['no limit', [{ ...one, limit: undefined }], 'limit'],
    ['the options of a limit', [{ ...one, limit: { limit: 5, period: '1s' } }], 'limit'],
    ['no key', [{ name: 'ip', limit }], 'key'],
    ['null for a key', [{ ...one, key: null }], 'key'],
    ['a number for a key', [{ ...one, key: 42 }], 'key'],
    ['an empty list for a key', [{ ...one, key: [] }], 'key'],
    ['a list with a hole for a key', [{ ...one, key: ['a', undefined] }], 'key'],
    ['a composite key without a rule', [{ name: 'ip', limit, key: ['a', 'b'] }], 'key'],
    ['a negative cost', [{ ...one, cost: -1 }], 'cost'],
    ['a broken cost', [{ ...one, cost: 1.5 }], 'cost'],
    ['NaN for a cost', [{ ...one, cost: Number.NaN }], 'cost'],
    ['null for a cost', [{ ...one, cost: null }], 'cost'],
    ['text for a cost', [{ ...one, cost: '5' }], 'cost'],
    ['a misspelt group', [{ ...one, group: 'shadows' }], 'group'],
    ['a penalty without a block', [{ ...one, penalty: { refusals: 3, withinMs: 1000 } }], 'penalty.blockMs'],
    ['a penalty of no refusals', [{ ...one, penalty: { ...penalty, refusals: 0 } }], 'penalty.refusals'],
    ['a penalty within no time', [{ ...one, penalty: { ...penalty, withinMs: 0 } }], 'penalty.withinMs'],
    ['a misspelt penalty', [{ ...one, penalty: { ...penalty, blocksMs: 5 } }], 'penalty.blocksMs'],
    ['a penalty of a shadow', [{ ...one, rule: 'a', group: 'shadow', penalty }], 'penalty'],
    ['a negative patience', [{ ...one, maxWaitMs: -1 }], 'maxWaitMs'],
    ['a misspelt policy', [{ ...one, onStoreFailure: 'opn' }], 'onStoreFailure'],
    ['null for a policy', [{ ...one, onStoreFailure: null }], 'onStoreFailure'],
  ]

  it.each(cases)('%s is refused by its name, and nothing is charged', async (_, items, argument) => {
    const engine = engineOn()
    // Known before, so that no cache of good names lets a bad one through.
    await engine.check([{ name: 'ip', limit, key: '192.0.2.1' }, one])
    for (const call of ['check', 'peek', 'reset'] as const) {
      const refused = await engine[call](items as CheckItem[]).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(InvalidArgumentError)
      expect(refused).toMatchObject({ argument, code: 'HEADGATE_INVALID_ARGUMENT' })
      expect((refused as Error).message).toMatch(new RegExp(`^${argument}: `))
    }
    expect(await remaining(engine)).toBe(4)
  })

  it.each([5, 'x', null, true])('%j for options is refused: a cost is no second argument', async (options) => {
    const engine = engineOn()
    await expect(engine.check([one], options as never)).rejects.toMatchObject({ argument: 'options' })
    await expect(engine.check([one], options as never)).rejects.toThrow(/a cost is given as \{ cost: 5 \}/)
    expect(await remaining(engine)).toBe(5)
  })

  it.each([null, 5, {}, 'abort'])('%j for a signal is refused', async (signal) => {
    const engine = engineOn()
    await expect(engine.check([one], { signal } as never)).rejects.toMatchObject({ argument: 'signal' })
    expect(await remaining(engine)).toBe(5)
  })
})

describe('a bad option of createEngine', () => {
  const store = memoryStore()
  const cases: [unknown, string][] = [
    [undefined, 'createEngine'],
    [null, 'createEngine'],
    [store.kind, 'createEngine'],
    [{}, 'store'],
    [{ store: null }, 'store'],
    [{ store: {} }, 'store'],
    [{ store: memoryStore }, 'store'],
    [{ store, timeoutMS: 5 }, 'createEngine.timeoutMS'],
    [{ store, timeoutMs: 0 }, 'timeoutMs'],
    [{ store, timeoutMs: 60_001 }, 'timeoutMs'],
    [{ store, timeoutMs: '50' }, 'timeoutMs'],
    [{ store, timeoutMs: Number.NaN }, 'timeoutMs'],
    [{ store, timeoutMs: null }, 'timeoutMs'],
    [{ store, instances: 0 }, 'instances'],
    [{ store, instances: 1.5 }, 'instances'],
    [{ store, instances: 100_001 }, 'instances'],
    [{ store, instances: '4' }, 'instances'],
  ]
  it.each(cases)('%o is refused by its name', (options, argument) => {
    const create = () => createEngine(options as EngineOptions)
    expect(create).toThrow(InvalidArgumentError)
    expect(create).toThrow(new RegExp(`^${argument}: `))
  })
})

describe('the engine', () => {
  it('counts by rule, name and key, whatever the names and the order of a check are', async () => {
    const engine = engineOn()
    const other: CheckItem = { rule: 'login', name: 'user+route', limit, key: ['42', '/api/*'] }
    await engine.check([one, other])
    await engine.check([other, one])
    expect([await remaining(engine), await remaining(engine, other)]).toEqual([3, 3])
    expect(await remaining(engine, { ...one, key: ['192.0.2.1'] })).toBe(3)
    expect(await remaining(engine, { ...one, key: new EncodedKey('192.0.2.1') })).toBe(3)
    expect(await remaining(engine, { ...one, key: new EncodedKey('~ip:192.0.2.1') })).toBe(5)
  })

  it('takes another cost from each limit, and none where one refuses', async () => {
    const engine = engineOn()
    const other: CheckItem = { ...one, name: 'user', cost: 3 }
    expect((await engine.check([one, other])).limits.map((status) => status.remaining)).toEqual([4, 2])
    const refused = await engine.check([one, other])
    expect(refused).toMatchObject({ allowed: false, reason: 'limit', rule: 'login', limitedBy: 'user' })
    expect(refused.limits.map((status) => [status.remaining, status.retryAfterMs])).toEqual([
      [4, 0],
      [2, 720_000],
    ])
  })

  it('names the limit that can never admit before one that takes long', async () => {
    const engine = engineOn()
    await engine.check([{ ...one, cost: 5 }])
    const decision = await engine.check([one, { ...one, name: 'user', cost: 6 }])
    expect(decision).toMatchObject({ reason: 'never', limitedBy: 'user', retryAfterMs: Number.POSITIVE_INFINITY })
  })

  it('rejects with the reason of a signal that was aborted before, and charges nothing', async () => {
    const engine = engineOn()
    const reason = new Error('gone')
    await expect(engine.check([one], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(await remaining(engine)).toBe(5)
    expect((await engine.check([one], { signal: new AbortController().signal })).allowed).toBe(true)
    expect((await engine.check([one], { signal: undefined })).allowed).toBe(true)
  })

  it('rejects everything after close, and close can be called again', async () => {
    const engine = engineOn()
    await engine.close()
    await engine.close()
    for (const call of ['check', 'peek', 'reset'] as const) {
      const refused = await engine[call]([one]).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(HeadgateError)
      expect(refused).toMatchObject({ code: 'HEADGATE_CLOSED' })
    }
  })

  it('rejects where the store’s clock is no clock, rather than letting all pass', async () => {
    for (const bad of [() => Number.NaN, () => Date.now() + 0.5, () => -1, () => '5' as unknown as number]) {
      const engine = createEngine({ store: memoryStore({ clock: bad }) })
      await expect(engine.check([one])).rejects.toMatchObject({ argument: 'clock' })
    }
  })
})

describe('what the engine tells', () => {
  const decisions = diagnostics.channel('headgate:decision')
  const unsubscribe: (() => void)[] = []
  afterEach(() => {
    for (const off of unsubscribe.splice(0)) off()
  })

  it('is every decision, with the counters’ keys, to its listeners and on the diagnostics channel', async () => {
    const engine = engineOn()
    const heard: EngineEvents['decision'][] = []
    const published: unknown[] = []
    const listener = (message: unknown) => void published.push(message)
    decisions.subscribe(listener)
    unsubscribe.push(() => decisions.unsubscribe(listener))
    const off = engine.on('decision', (event) => heard.push(event))
    const checked = await engine.check([one])
    const peeked = await engine.peek([one])
    expect(heard.map(({ decision, peek }) => [decision, peek])).toEqual([
      [checked, false],
      [peeked, true],
    ])
    expect(published).toEqual(heard)
    const [part] = heard[0]?.items ?? []
    expect([part?.space, part?.value, part?.cost]).toEqual(['login:ip:', '192.0.2.1', 1])
    off()
    await engine.check([one])
    expect([heard.length, published.length]).toEqual([2, 3])
  })

  it('changes no decision where a listener throws: the error is the process’s', async () => {
    const engine = engineOn()
    const thrown = new Error('of the listener')
    const uncaught = vi.fn()
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException').on('uncaughtException', uncaught)
    unsubscribe.push(() => {
      process.removeAllListeners('uncaughtException')
      for (const other of others) process.on('uncaughtException', other)
    })
    const heard = vi.fn()
    engine.on('decision', () => {
      throw thrown
    })
    engine.on('decision', heard)
    expect((await engine.check([one])).allowed).toBe(true)
    await new Promise((resolve) => setImmediate(resolve))
    expect(uncaught.mock.calls.map(([error]) => error)).toEqual([thrown])
    expect(heard).toHaveBeenCalledOnce()
  })

  it('is refused to what is no event and no function', () => {
    const engine = engineOn()
    expect(() => engine.on('decisions' as 'decision', () => undefined)).toThrow(
      /^event: "decisions" is none of decision, /,
    )
    expect(() => engine.on('toString' as 'decision', () => undefined)).toThrow(/^event: /)
    expect(() => engine.on('decision', undefined as never)).toThrow(/^listener: undefined is not a function/)
  })
})
