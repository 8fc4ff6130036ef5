import { createEngine, memoryStore } from 'headgate'
import { describe, expect, it } from 'vitest'
import { errors, itemsOf, keys, rules } from './test-support/rules.ts'

const limit = (text: string) => `rules: [{ name: a, description: d, limits: [{ by: ip, limit: ${text} }] }]`

/** Faults that real limiters shipped in their configuration, each under its public report. */
describe('faults of other limiters are impossible in a rule file:', () => {
  it('routes of one rule share its budget, also when they take turns (fastify/fastify-rate-limit#463)', async () => {
    const file = rules(
      'rules: [{ name: group, description: d, match: { path: [/login, /signup/*] }, limits: [{ by: ip, limit: 3/h }] }]',
    )
    const engine = createEngine({ store: memoryStore() })
    const allowed: boolean[] = []
    for (const path of ['/login', '/signup/a', '/login', '/signup/b', '/login']) {
      allowed.push((await engine.check(itemsOf(file, { path }))).allowed)
    }
    expect(allowed).toEqual([true, true, true, false, false])
    await engine.close()
  })

  it('counters are kept when rules are reordered, commented, or others change (apache/apisix#6760, #3108)', async () => {
    const a = '  - { name: a, description: d, match: { path: /x }, limits: [{ by: ip, limit: 3/h }] }\n'
    const b = '  - { name: b, description: d, match: { path: /x }, limits: [{ by: global, limit: 9/h }] }\n'
    const versions = [
      `rules:\n${a}${b}`,
      `rules:\n${b}${a}`,
      `# a comment\nrules:\n${a}# another\n${b}`,
      `rules:\n${a}${b.replace('9/h', '900/h')}`,
      `rules:\n${a.replace('description: d', 'description: other words')}${b}  - { name: c, description: d, deny: true, match: { path: /c } }\n`,
    ]
    const engine = createEngine({ store: memoryStore() })
    const found = new Set<string>()
    const allowed: boolean[] = []
    for (const text of versions) {
      const file = rules(text)
      found.add(keys(file, { path: '/x' }).sort().join())
      allowed.push((await engine.check(itemsOf(file, { path: '/x' }))).allowed)
    }
    expect([...found]).toHaveLength(1)
    expect(allowed).toEqual([true, true, true, false, false])
    await engine.close()
  })

  it('two routes of byte-identical rules have a budget each (apache/apisix#7746)', async () => {
    const one = (name: string) =>
      `{ name: ${name}, description: d, match: { path: /${name} }, limits: [{ by: ip, limit: 1/h }] }`
    const file = rules(`rules: [${one('a')}, ${one('b')}]`)
    const engine = createEngine({ store: memoryStore() })
    const pass = async (path: string) => (await engine.check(itemsOf(file, { path }))).allowed
    expect([await pass('/a'), await pass('/b'), await pass('/a'), await pass('/b')]).toEqual([true, true, false, false])
    await engine.close()
  })

  it('one request is counted once by each of several limits (rate-limit-redis#171, express-rate-limit#395)', async () => {
    const file = rules(`
rules:
  - name: route
    description: d
    limits:
      - { name: minute, by: ip, limit: 20/m, algorithm: fixed-window }
      - { name: ten, by: ip, limit: 200/10m }
      - { name: hour, by: ip, limit: 1200/h, algorithm: sliding-log }`)
    const engine = createEngine({ store: memoryStore() })
    for (let i = 1; i <= 20; i++) {
      const decision = await engine.check(itemsOf(file, {}))
      expect(decision.limits.map(({ remaining }) => remaining)).toEqual([20 - i, 200 - i, 1200 - i])
    }
    await engine.close()
  })

  it.each([-1, -1e9, 0.5, '"5"', '5s', '.nan', '.inf', '1e400', 2 ** 53, 'null', 'true'])(
    'a cost of %s is a load error (mailgun/gubernator#156)',
    (cost) => {
      const found = errors(`rules: [{ name: a, description: d, cost: ${cost}, limits: [{ by: ip, limit: 5/s }] }]`)
      expect(found).toEqual([expect.stringContaining(' rules[0].cost: ')])
    },
  )

  it.each([
    ['1000003/day, burst: 1000000', 'RANGE', 'burst', 'these fit: burst'],
    ['1/30d, burst: 1000000', 'RANGE', 'burst', 'these fit: burst 3474 or less'],
    ['5/4000d', 'RANGE', 'limit', 'ten years'],
    ['9007199254740992/s', 'RANGE', 'limit', 'too large'],
    ['-5/s', 'VALUE', 'limit', 'is not a rate'],
    ['1.5/s', 'VALUE', 'limit', 'is not a rate'],
    ['10001/h, algorithm: sliding-log', 'RANGE', 'limit', 'take a sliding window for more'],
    ['10001, algorithm: concurrency', 'RANGE', 'limit', '10000'],
    ['5/day, algorithm: fixed-window, align: calendar, timeZone: Mars/Base', 'VALUE', 'timeZone', 'no time zone'],
    ['5/week, algorithm: fixed-window, align: calendar, anchorDay: 8', 'VALUE', 'anchorDay', 'from 1 (Monday) to 7'],
    ['5/month, algorithm: fixed-window, align: calendar, anchorDay: 32', 'RANGE', 'anchorDay', 'from 1 to 31'],
  ])('numbers outside their range are load errors that say it: %s (traefik/traefik#8235)', (text, code, key, says) => {
    const [error, ...more] = errors(limit(text))
    expect(more).toEqual([])
    expect(error).toContain(` ${code} rules[0].limits[0].${key}: `)
    expect(error).toContain(says)
  })
})
