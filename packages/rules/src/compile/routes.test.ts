import { describe, expect, it } from 'vitest'
import { rules } from '../test-support/rules.ts'

const routed = (paths: readonly string[], settings = '') =>
  rules(
    `gateway: { ${settings} routes: [${paths.map((path) => `{ path: "${path}", upstream: "http://h" }`).join(', ')}] }\nrules: []`,
  )

describe('a route', () => {
  const file = routed(['/*', '/api/*', '/api/v1/*', '/api/v1', '/api/:x', '/api/:x/*', '/:y/v1', '/exact/'])

  it.each([
    ['/', '/*'],
    ['/other', '/*'],
    ['/api', '/api/*'],
    ['/api/', '/api/*'],
    ['/API/v1', '/api/v1'],
    ['/api/v1/', '/api/v1'],
    ['/api/v1/x', '/api/v1/*'],
    ['/api/v2', '/api/:x'],
    ['/api/v2/x/y', '/api/:x/*'],
    ['/b/v1', '/:y/v1'],
    ['/exact', '/exact/'],
  ])('of %s is %s: exact before longest', (path, route) => {
    expect(file.routeFor(path)?.path).toBe(route)
  })

  it('is none where no path fits, or nothing is routed', () => {
    expect(routed(['/api/*']).routeFor('/apis')).toBeUndefined()
    expect(rules('rules: []').routeFor('/')).toBeUndefined()
  })

  it('is found as the settings for paths say', () => {
    expect(routed(['/a'], 'paths: { case: sensitive },').routeFor('/A')).toBeUndefined()
    expect(routed(['/a'], 'paths: { trailingSlash: strict },').routeFor('/a/')).toBeUndefined()
  })

  it('has origins, one or many, without a final slash', () => {
    const file = rules(
      'gateway: { routes: [{ path: /a, upstream: ["http://H:80/", "https://[::1]:8443"] }] }\nrules: []',
    )
    expect(file.routeFor('/a')?.upstreams).toEqual(['http://h', 'https://[::1]:8443'])
  })
})
