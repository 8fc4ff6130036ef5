import { describe, expect, it } from 'vitest'
import { problems, warnings } from '../test-support/rules.ts'

describe('warnings', () => {
  const limit = (rest: string) => `rules: [{ name: a, description: d, limits: [{ by: ip, ${rest} }] }]`

  it('ask for a description', () => {
    expect(warnings('rules: [{ name: a, deny: true }]')).toEqual([
      'rules[0].name: has no description; say where its numbers come from',
    ])
  })

  it('ask how many share a store, until the file says so', () => {
    expect(warnings('store: redis://h\nrules: []')[0]).toMatch(/^store: .*write instances: and their number, 1 too$/)
    expect(warnings('store: redis://h\ninstances: 1\nrules: []')).toEqual([])
    expect(warnings('store: redis://h\ninstances: 2\nrules: []')).toEqual([])
    expect(warnings('rules: []')).toEqual([])
  })

  it('doubt a burst above both N and 10 s of the rate', () => {
    expect(warnings(limit('limit: 10/s, burst: 101'))[0]).toContain('rules[0].limits[0].burst: 101 is more than')
    expect(warnings(limit('limit: 10/s, burst: 100'))).toEqual([])
    expect(warnings(limit('limit: 60/m, burst: 60'))).toEqual([])
    expect(warnings(limit('limit: 60/m, burst: 61'))).toHaveLength(1)
    expect(warnings(limit('limit: 60/m, overrides: { unix: { limit: 1/s, burst: 11 } }'))[0]).toContain(
      'overrides.unix.burst',
    )
  })

  it.each([
    ['{ by: [ip, u], limit: 5/s }', 'rules[0].limits[0].by[1]'],
    ['{ by: u, limit: 5/s }, { by: ip, limit: unlimited }', 'rules[0].limits[0].by'],
    ['{ by: u, limit: 5/s }, { by: ip, limit: 5/s }', undefined],
    ['{ by: global, limit: 5/s }, { by: [ip, u], limit: 5/s }', undefined],
  ])('say that skip lets requests escape the limits %s, unless one is left', (limits, place) => {
    const text = `dimensions: { u: { header: u, missing: skip } }\nrules: [{ name: a, description: d, limits: [${limits}] }]`
    const found = place === undefined ? [] : [expect.stringContaining(`${place}: "u" has missing: skip`)]
    expect(warnings(text)).toEqual(found)
  })

  it.each([
    ['cost: 6', 'limit: 5/s', 'limit: "5/s" holds less than one request of this rule costs, so none can ever pass'],
    ['cost: 6', 'limit: 9/s, burst: 5', 'limit: "9/s" holds less than one request'],
    ['cost: 6', 'limit: 9/s, overrides: { unix: 5/s }', 'overrides.unix: "5/s" holds less than one request'],
    ['cost: 6', 'limit: 9/s, overrides: { unix: { limit: 9/s, burst: 5 } }', 'overrides.unix: holds less than one'],
    ['cost: { header: c, max: 6 }', 'limit: 5/s', 'limit: "5/s" holds less than max of the cost allows'],
    ['cost: { header: c, min: 6, max: 9 }', 'limit: 5/s', 'limit: "5/s" holds less than one request'],
    ['cost: 5', 'limit: 5/s', undefined],
    ['cost: { header: c, max: 5 }', 'limit: 5/s', undefined],
    ['cost: { header: c, max: 5 }', 'limit: 0/s', undefined],
  ])('say where what a request may cost is more than a limit holds: %s, %s', (cost, numbers, message) => {
    const text = `rules: [{ name: a, description: d, ${cost}, limits: [{ by: host, limit: 100/s }, { by: ip, ${numbers} }] }]`
    expect(warnings(text)).toEqual(message === undefined ? [] : [expect.stringContaining(`limits[1].${message}`)])
  })

  it('say that nothing is routed', () => {
    expect(warnings('gateway: {}\nrules: []')[0]).toContain('no routes')
  })

  it('do not take a rule whose match has errors for one that matches all', () => {
    const text =
      'rules: [{ name: other, description: d, allow: true, match: { path: a } }, { name: a, description: d, limits: [{ by: ip, limit: 5/s }] }]'
    expect(problems(text).map(({ severity, path }) => [severity, path])).toEqual([['error', 'rules[0].match.path']])
  })

  it.each([
    ['deny: true', '{ path: /a }', 'can never decide: rules[0] denies'],
    ['allow: true', '{ path: /a }', 'can never decide: rules[0] lets pass'],
    ['allow: true, match: { path: "/:x/*" }', '{ path: [/a/b, /a/*] }', 'can never decide'],
    ['allow: true, match: { method: GET }', '{ method: HEAD }', 'can never decide'],
    ['deny: true', '{ method: OPTIONS }', 'can never decide'],
    ['limits: [{ by: ip, limit: 9/s }]', '{ otherwise: true }', 'can never match'],
  ])('see that beside a rule with %s one for %s is unreachable', (other, match, message) => {
    const text = `rules: [{ name: other, description: d, ${other} }, { name: a, description: d, match: ${match}, limits: [{ by: ip, limit: 5/s }] }]`
    expect(warnings(text)).toHaveLength(1)
    expect(warnings(text)[0]).toContain(message)
  })

  it.each([
    ['allow: true', '{ method: OPTIONS }'],
    ['allow: true, match: { path: /a }', '{ path: [/a, /b] }'],
    ['allow: true, match: { path: /a }', '{}'],
    ['allow: true, match: { ip: 10.0.0.0/8 }', '{ path: /a }'],
    ['deny: true, mode: off', '{ path: /a }'],
    ['limits: [{ by: ip, limit: 9/s }]', '{ path: /a }'],
    ['limits: [{ by: ip, limit: 9/s }], match: { path: /a }', '{ otherwise: true }'],
  ])('see that beside a rule with %s one for %s can be reached', (other, match) => {
    expect(
      warnings(
        `rules: [{ name: other, description: d, ${other} }, { name: a, description: d, match: ${match}, limits: [{ by: ip, limit: 5/s }] }]`,
      ),
    ).toEqual([])
  })
})
