import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  leakyBucket,
  memoryStore,
  RateLimitedError,
  rateLimited,
  tokenBucket,
} from './index.ts'

const twice = () =>
  createLimiter({ name: 'wrapped', store: memoryStore(), limit: tokenBucket({ limit: 2, period: '1h' }) })

describe('a wrapped function', () => {
  it('runs while its limits admit, and else rejects with the decision, by its own keys and costs', async () => {
    const limiter = twice()
    let calls = 0
    const send = limiter.wrap(
      (to: string, units: number) => {
        calls += 1
        return `${to} ${units}`
      },
      { key: (to) => to, cost: (_, units) => units },
    )
    expect([await send('ann', 2), await send('bob', 1)]).toEqual(['ann 2', 'bob 1'])
    const refused = await send('ann', 1).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(RateLimitedError)
    expect(refused).toMatchObject({ code: 'HEADGATE_LIMITED', decision: { allowed: false, limitedBy: 'wrapped' } })
    expect(calls).toBe(2)
  })

  it('holds its slot while it runs, and gives it back however it ends', async () => {
    const limiter = createLimiter({ name: 'one', store: memoryStore(), limit: concurrency({ limit: 1 }) })
    let end: (error?: Error) => void = () => undefined
    const work = limiter.wrap(() => new Promise<void>((resolve, reject) => (end = (e) => (e ? reject(e) : resolve()))))
    const first = work()
    await expect(work()).rejects.toThrow(RateLimitedError)
    end(new Error('broken'))
    await expect(first).rejects.toThrow('broken')
    const next = work()
    await new Promise((resolve) => setImmediate(resolve))
    end()
    await next
  })

  it('keeps its slot for as long as it runs, however short the ttl', async () => {
    const limiter = createLimiter({ name: 'one', store: memoryStore(), limit: concurrency({ limit: 1, ttl: 30 }) })
    const work = limiter.wrap(() => new Promise((resolve) => setTimeout(resolve, 150)))
    const first = work()
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      await expect(work()).rejects.toThrow(RateLimitedError)
    }
    await first
    await work()
    await limiter.close()
  })

  it('waits for its turn also where that is later than a timer can be set for', async () => {
    const limit = leakyBucket({ limit: 1, period: '60d', queue: 1 })
    const limiter = createLimiter({ name: 'slow', store: memoryStore(), limit })
    let calls = 0
    const work = limiter.wrap(() => {
      calls += 1
    })
    await work()
    // A timer that cannot be set fires after 1 ms.
    void work()
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(calls).toBe(1)
  })

  it('runs nothing where a key is missing or a cost is none, and says which', async () => {
    let calls = 0
    const limiter = twice()
    const work = limiter.wrap(() => (calls += 1), { key: () => undefined as never })
    await expect(work()).rejects.toMatchObject({ code: 'HEADGATE_INVALID_ARGUMENT', argument: 'key' })
    for (const cost of [-1, 0.5, Number.NaN, '5' as never]) {
      await expect(limiter.wrap(() => (calls += 1), { cost })()).rejects.toMatchObject({ argument: 'cost' })
    }
    for (const waitMs of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never]) {
      expect(() => limiter.wrap(() => undefined, { waitMs })).toThrow(/^waitMs: /)
    }
    expect(() => limiter.wrap(() => undefined, { wait: 5 } as never)).toThrow(/wait/)
    expect([calls, (await limiter.peek('')).limits[0]?.remaining]).toEqual([0, 2])
  })

  it('waits where it may', async () => {
    const limiter = createLimiter({
      name: 'w',
      store: memoryStore(),
      limit: tokenBucket({ limit: 20, period: '1s', burst: 1 }),
    })
    const atMs: number[] = []
    const mark = limiter.wrap(() => void atMs.push(performance.now()), { waitMs: 1000 })
    await Promise.all([mark(), mark(), mark()])
    expect((atMs[2] as number) - (atMs[0] as number)).toBeGreaterThan(90)
  })

  it('keeps its this, and refuses what is no function', async () => {
    const object = {
      name: 'x',
      get: twice().wrap(function (this: { name: string }) {
        return this.name
      }),
    }
    expect(await object.get()).toBe('x')
    expect(() => twice().wrap(5 as never)).toThrow(/^fn: 5 is not a function/)
  })
})

describe('the decorator', () => {
  it('limits a method, in both forms of decorators', async () => {
    const method = (n: number) => n + 1
    const standard = rateLimited({ limiter: twice() })(method, { kind: 'method', name: 'm' })
    expect([await standard(1), await standard(2)]).toEqual([2, 3])
    await expect(standard(3)).rejects.toThrow(RateLimitedError)
    const descriptor = { value: method }
    const legacy = rateLimited({ limiter: twice() })({}, 'm', descriptor)
    expect(await legacy.value(1)).toBe(2)
    expect(() => rateLimited({ limiter: twice() })(method, { kind: 'class' })).toThrow(/methods only/)
  })

  it.each([false, true])(
    'is called as compilers call it, with experimentalDecorators %s',
    async (experimentalDecorators) => {
      const source = `class Api {
      name = 'api'
      @rateLimited({ limiter, key: (user) => user })
      async get(user) { return this.name + ' ' + user }
    }
    return new Api()`
      const target = ts.ScriptTarget.ES2022
      const code = ts.transpile(`function make(rateLimited, limiter) { ${source} }`, { target, experimentalDecorators })
      const make = new Function(`${code}; return make`)() as (...parts: unknown[]) => {
        get(user: string): Promise<string>
      }
      const api = make(rateLimited, twice())
      expect([await api.get('ann'), await api.get('ann'), await api.get('bob')]).toEqual([
        'api ann',
        'api ann',
        'api bob',
      ])
      await expect(api.get('ann')).rejects.toMatchObject({ code: 'HEADGATE_LIMITED' })
    },
  )
})
