import { createEngine, memoryStore } from 'headgate'
import { describe, expect, it } from 'vitest'
import { errors, itemsOf, rules } from '../test-support/rules.ts'

interface Spec {
  match?: object
  count?: number
  allow?: boolean
}

/** Rules with so many limits each. */
function file(specs: readonly Spec[]): string {
  return JSON.stringify({
    rules: specs.map(({ match, count = 1, allow }, i) => ({
      name: `r${i}`,
      description: 'd',
      ...(match ? { match } : {}),
      ...(allow
        ? { allow }
        : { limits: Array.from({ length: count }, (_, n) => ({ name: `l${n}`, by: 'ip', limit: '9/s' })) }),
    })),
  })
}

const many = (count: number, match: (i: number) => object) =>
  Array.from({ length: count }, (_, i) => ({ match: match(i) }))

describe('a file by which one request would meet more limits than a check may have', () => {
  it.each<[what: string, specs: Spec[]]>([
    ['in one rule', [{ count: 1001 }]],
    ['in many rules for one path', many(1001, () => ({ path: '/many' }))],
    [
      'in rules for a path and all below others',
      [
        { match: { path: '/a/*' }, count: 600 },
        { match: { path: '/a/:b/c' }, count: 401 },
      ],
    ],
    [
      'in rules with conditions that one request fulfils',
      [
        {
          match: { host: '*.example.com', header: { 'X-A': '*' }, ip: '10.0.0.0/8', method: ['POST', 'GET'] },
          count: 500,
        },
        { match: { host: 'any.example.com', header: { 'x-a': '*' } }, count: 501 },
      ],
    ],
    ['where no other rule matches', [{ match: { otherwise: true }, count: 1001 }]],
  ])('is refused: %s', (_what, specs) => {
    expect(errors(file(specs)).join('\n')).toMatch(
      /RANGE rules\[\d+\]\.limits: one request meets 1001 limits here, .*more than the 1000 of one check; write fewer, or narrow match/,
    )
  })

  it.each<[what: string, specs: Spec[]]>([
    ['of many paths', many(1500, (i) => ({ path: `/tenants/t${i}/*` }))],
    ['of many hosts', many(1500, (i) => ({ host: `t${i}.example.com` }))],
    ['of many values of a field', many(1500, (i) => ({ header: { 'x-tenant': `t${i}` } }))],
    ['of many addresses', many(1500, (i) => ({ ip: `10.0.${i >> 8}.${i & 255}` }))],
    [
      'of several methods',
      [
        { match: { method: 'GET' }, count: 600 },
        { match: { method: 'POST' }, count: 600 },
      ],
    ],
    ['that an allow rule keeps away', [{ count: 1001 }, { allow: true }]],
  ])('is not one that holds as many limits for different requests: %s', (_what, specs) => {
    expect(errors(file(specs))).toEqual([])
  })

  it('holds one more than the library judges', async () => {
    const items = itemsOf(rules(file([{ count: 1000 }])), {})
    const engine = createEngine({ store: memoryStore() })
    expect((await engine.check(items)).allowed).toBe(true)
    await expect(engine.check([...items, { ...items[0], name: 'more' } as (typeof items)[0]])).rejects.toThrow('1000')
    await engine.close()
  })
})
