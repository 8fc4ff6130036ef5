import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sized } from '../../../../../test/arbitraries.ts'
import { statusOf, traceLimit } from '../../../../../test/traced-limit.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { MAX_PERIOD_US } from '../params.ts'
import { tokenBucket } from './index.ts'

function refusal(options: unknown): InvalidArgumentError {
  try {
    tokenBucket(options as Parameters<typeof tokenBucket>[0])
  } catch (error) {
    if (error instanceof InvalidArgumentError) return error
    throw error
  }
  throw new Error(`accepted: ${JSON.stringify(options)}`)
}

describe('the numbers of a token bucket', () => {
  it.each([
    '6O',
    '',
    ' ',
    '0x10',
    null,
    undefined,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    1.5,
    '100',
    2 ** 53,
    5n,
    [5],
    {},
  ])('refuses %s as a limit, and names it (ahliweb/awcms PR#601)', (limit) => {
    const error = refusal({ limit, period: '1s' })
    expect([error.argument, error.code]).toEqual(['limit', 'HEADGATE_INVALID_ARGUMENT'])
  })

  it.each([
    '',
    '1',
    '1 s',
    '1S',
    '1.5s',
    '-1s',
    's',
    '1mo',
    '99999999999999999s',
    null,
    undefined,
    Number.NaN,
    0,
    -1,
    0.0001,
    true,
  ])('refuses %j as a period, and names it', (period) => expect(refusal({ limit: 1, period }).argument).toBe('period'))

  it.each([0, -1, 1.5, Number.NaN, null, '7', 2 ** 53])(
    'refuses %j as a burst, and names it (traefik#8724)',
    (burst) => {
      expect(refusal({ limit: 1, period: '1s', burst }).argument).toBe('burst')
    },
  )

  it('refuses a burst beside limit 0, which refuses all', () => {
    expect(refusal({ limit: 0, period: '1s', burst: 1 }).message).toMatch(/^burst: 1 contradicts limit 0/)
  })

  it.each([
    [{ limit: 1, periods: '1s' }, 'tokenBucket.periods', /there are limit, period, burst, initial, scope$/],
    [{ limit: 1, period: '1s', Burst: 5 }, 'tokenBucket.Burst', /no such option/],
    [null, 'tokenBucket', /^tokenBucket: null is not an object with limit, period, burst, initial, scope$/],
    [5, 'tokenBucket', /5 is not an object/],
    [undefined, 'tokenBucket', /undefined is not an object/],
    [[1, '1s'], 'tokenBucket', /an array is not an object/],
  ])('refuses the options %j', (options, argument, message) => {
    const error = refusal(options)
    expect(error.argument).toBe(argument)
    expect(error.message).toMatch(message)
  })

  it('refuses a period of more than ten years as out of range', () => {
    expect(tokenBucket({ limit: 1, period: '3660d' }).periodUs).toBe(MAX_PERIOD_US)
    expect(refusal({ limit: 1, period: '3661d' }).code).toBe('HEADGATE_OUT_OF_RANGE')
  })

  it('refuses what would leave the exact range, with numbers that fit (traefik/traefik#8235)', () => {
    const error = refusal({ limit: 1_000_003, period: '1d', burst: 1_000_000 })
    expect(error.code).toBe('HEADGATE_OUT_OF_RANGE')
    expect(error.message).toBe(
      'burst: 1000000 with limit 1000003 in 86400000 ms leaves the range of exact arithmetic; ' +
        'these fit: burst 104249 or less at this rate, or limit 1000005 in the same period with this burst',
    )
    expect(() => tokenBucket({ limit: 1_000_003, period: '1d', burst: 104_249 })).not.toThrow()
    expect(() => tokenBucket({ limit: 1_000_005, period: '1d', burst: 1_000_000 })).not.toThrow()
  })

  it('names numbers that do fit, whatever was refused', () => {
    const options = fc.record({
      limit: sized(2 ** 53 - 1, 1),
      period: sized(MAX_PERIOD_US / 1000, 1),
      burst: sized(2 ** 53 - 1, 1),
    })
    fc.assert(
      fc.property(options, ({ limit, period, burst }) => {
        let error: InvalidArgumentError
        try {
          tokenBucket({ limit, period, burst })
          return
        } catch (caught) {
          error = caught as InvalidArgumentError
        }
        const [, largest] = /burst (\d+) or less at this rate/.exec(error.message) as unknown as [string, string]
        expect(() => tokenBucket({ limit, period, burst: Number(largest) })).not.toThrow()
        expect(refusal({ limit, period, burst: Number(largest) + 1 }).code).toBe('HEADGATE_OUT_OF_RANGE')
        const near = /or limit (\d+) in the same period/.exec(error.message)
        if (near) expect(() => tokenBucket({ limit: Number(near[1]), period, burst })).not.toThrow()
      }),
      { numRuns: 60 },
    )
  })

  it.each([
    [1e15, '1s', undefined],
    [1, '30d', 1_000_000],
    [120, '1s', 120],
    [1, '365d', 1],
  ])(
    'counts exactly at %d per %s, or refuses the rule with the range (redis/redis#1118)',
    async (limit, period, burst) => {
      const options = { limit, period, ...(burst !== undefined && { burst }) }
      try {
        tokenBucket(options)
      } catch (error) {
        expect((error as InvalidArgumentError).code).toBe('HEADGATE_OUT_OF_RANGE')
        return
      }
      const bucket = tokenBucket(options)
      const traced = traceLimit(bucket)
      const cost = Math.ceil(bucket.capacity / 7)
      expect(statusOf(await traced.check(cost)).remaining).toBe(bucket.capacity - cost)
      expect((await traced.check(bucket.capacity)).allowed).toBe(false)
    },
  )
})
