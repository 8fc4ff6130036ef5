import { describe, expect, it } from 'vitest'
import { keepSettings } from './load.ts'
import { needsRestart } from './restart.ts'
import { keys, rules } from './test-support/rules.ts'

const text = ({ settings = 'timeout: 50ms', path = '/a', user = 'x-user' } = {}) => `
${settings}
dimensions: { user: { header: ${user}, secret: true } }
rules: [{ name: r, description: d, match: { path: ${path} }, limits: [{ by: user, limit: 5/s }] }]`

describe('what waits for a restart', () => {
  const change = (before: string, after: string) =>
    needsRestart(rules(text({ settings: before })), rules(text({ settings: after })))

  it.each([
    ['timeout: 50ms', 'timeout: 60ms', ['timeout']],
    ['store: memory', 'store: redis://h', ['store']],
    ['store: redis://u:a@h', 'store: redis://u:b@h', ['store']],
    ['prefix: a', 'prefix: b', ['prefix']],
    ['keySecret: a', 'keySecret: b', ['keySecret']],
    ['instances: 1', 'instances: 2', ['instances']],
    ['prefix: rate_limit', 'timeout: 50ms', []],
    [
      'gateway: { drain: 1s, listen: ":1" }',
      'gateway: { drain: 2s, listen: ":2" }',
      ['gateway.listen', 'gateway.drain'],
    ],
    ['gateway: { paths: {} }', 'gateway: { paths: { case: sensitive } }', ['gateway.paths']],
    ['gateway: {}', 'timeout: 50ms', ['gateway']],
    ['admin: { token: a }', 'admin: { token: b, hosts: [x] }', ['admin.token', 'admin.hosts']],
  ])('from %s to %s: %j', (before, after, names) => {
    expect(change(before, after)).toEqual(names)
  })

  it('is not rules, dimensions, defaults and routes', () => {
    const routed = (path: string) =>
      `gateway: { routes: [{ path: ${path}, upstream: "http://h" }] }\ndefaults: { headers: ${path === '/a' ? 'both' : 'off'} }`
    expect(
      needsRestart(
        rules(text({ settings: routed('/a') })),
        rules(text({ settings: routed('/b'), path: '/b', user: 'x-other' })),
      ),
    ).toEqual([])
  })
})

describe('a reload', () => {
  it('takes rules, dimensions, defaults and routes, and keeps all other settings', () => {
    const before = rules(
      text({
        settings:
          'keySecret: old\ngateway: { paths: { case: sensitive }, routes: [{ path: /old, upstream: "http://h" }] }',
      }),
    )
    const after = rules(
      text({
        settings:
          'keySecret: new\ntimeout: 9s\ngateway: { listen: ":1", routes: [{ path: /new, upstream: "http://h" }] }',
        path: '/b',
        user: 'x-other',
      }),
    )
    const kept = keepSettings(before, after)
    const parts = { path: '/b', headers: { 'x-user': 'ann', 'x-other': 'ann' } }
    expect(keys(kept, parts)[0]).toBe(keys(before, { ...parts, path: '/a' })[0])
    expect(keys(kept, { ...parts, path: '/B' })).toEqual([])
    expect(kept).toMatchObject({
      timeoutMs: 50,
      version: after.version,
      gateway: { listen: before.gateway?.listen, paths: { caseSensitive: true } },
    })
    expect([kept.routeFor('/new')?.path, kept.routeFor('/old')?.path]).toEqual(['/new', undefined])
    expect(needsRestart(before, kept)).toEqual([])
    expect(keepSettings(kept, after)).toMatchObject({ timeoutMs: 50 })
  })

  it('is refused where its rules do not fit the settings that stay', () => {
    const before = rules(text())
    const after = rules(text({ settings: 'gateway: { paths: { allow: ["%2F"] } }', path: '/a%2Fb' }))
    expect(() => keepSettings(before, after)).toThrow('can match no request')
  })
})
