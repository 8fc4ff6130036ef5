import { describe, expect, it } from 'vitest'
import { keyOf, keys, rules } from '../test-support/rules.ts'

const file = rules(`
keySecret: pepper
dimensions:
  user: { header: x-user }
  mail: { query: email, normalize: email, secret: true }
  net: { address: { v4: 24 } }
rules:
  - name: r
    description: d
    limits:
      - { by: global, limit: 9/s }
      - { by: user, limit: 5/s, overrides: { acme: 7/s } }
      - { by: [user, ip], limit: 5/s }
      - { by: mail, limit: 5/s }
      - { by: net, limit: 5/s }
  - { name: list, description: d, deny: true, match: { path: /no } }
  - { name: off, description: d, mode: off, limits: [{ by: ip, limit: 5/s }] }`)

const found = (rule: string, limit: string | undefined, values: Record<string, string>) =>
  file.itemsFor(rule, limit, values).map(keyOf)

describe('the limits for given values', () => {
  it('are those for which all values are given', () => {
    expect(found('r', undefined, { user: 'ann' })).toEqual(['r:user:ann'])
    expect(found('r', undefined, { user: 'ann', ip: '1.2.3.4' })).toEqual(['r:user:ann', 'r:user+ip:ann:1.2.3.4'])
    expect(found('r', undefined, {})).toEqual(['r:global:'])
    expect(found('r', 'user+ip', { user: 'ann', ip: '2001:db8::1' })).toEqual(['r:user+ip:ann:2001%3Adb8%3A%3A'])
    expect(found('off', undefined, { ip: '1.2.3.4' })).toEqual(['off:ip:1.2.3.4'])
  })

  it.each([
    ['off', 'ip', 'ann'],
    ['off', 'ip', '1.2.3'],
    ['off', 'ip', '~ip:1.2.3.4'],
    ['r', 'net', 'office/24'],
  ])('refuse for %s by %s the value %s, which is no address', (rule, by, value) => {
    expect(() => found(rule, by, { [by]: value })).toThrow(
      `${by}: "${value}" is not an address; write one such as 203.0.113.7`,
    )
  })

  it('have the keys that requests have, however the values are spelled', () => {
    const requested = keys(file, { query: 'email=Ann%40X.org', ip: '203.0.113.9' })
    expect(requested).toEqual(expect.arrayContaining(found('r', undefined, { mail: ' ANN@x.org ' })))
    expect(requested).toEqual(expect.arrayContaining(found('r', undefined, { net: '203.0.113.77' })))
    expect(requested).toEqual(expect.arrayContaining(found('r', undefined, { net: '203.0.113.0/24' })))
  })

  it('are those of a caller without a value, named as its counter is shown', () => {
    const [requested] = keys(file, { ip: '2001:db8:1:2:3::4' }).filter((key) => key.startsWith('r:user:'))
    expect(requested).toBe('r:user:~ip:2001%3Adb8%3A1%3A2%3A%3A')
    expect(found('r', undefined, { user: '~ip:2001:db8:1:2:3::4' })).toEqual([requested])
    expect(found('r', 'user', { user: '~ip:2001%3Adb8%3A1%3A2%3A%3A' })).toEqual([requested])
    expect(found('r', 'user+ip', { user: '~ip:unix', ip: 'unix' })).toEqual(['r:user+ip:~ip:unix:unix'])
    expect(found('r', 'user', { user: '~ip:ann' })).toEqual(['r:user:%7Eip%3Aann'])
  })

  it('have the numbers of their override', () => {
    expect(file.itemsFor('r', 'user', { user: 'acme' })[0]?.limit.limit).toBe(7)
  })

  it.each([
    ['x', undefined, {}, 'there is no rule "x"; the file has r, list, off'],
    ['lisst', undefined, {}, 'there is no rule "lisst"; did you mean list'],
    ['r', 'usr', {}, 'rule r has no limit "usr"; did you mean user'],
    ['r', 'user', {}, 'limit r/user needs a value for user'],
    ['r', undefined, { ip: 'a' }, 'no limit of rule r fits the values given'],
    ['r', undefined, { user: 'a', x: 'b' }, 'rule r counts by global, user, ip, mail, net, not by "x"'],
    ['r', undefined, { __proto__x: 'b' }, 'not by "__proto__x"'],
    ['list', undefined, {}, 'rule list has no limits'],
    ['list', undefined, { user: 'a' }, 'rule list has no limits, not by "user"'],
  ] as const)('of %s/%s with %j: %s', (rule, limit, values, message) => {
    expect(() => file.itemsFor(rule, limit, values)).toThrow(
      expect.objectContaining({ code: 'HEADGATE_USAGE', message: expect.stringContaining(message) }),
    )
  })
})
