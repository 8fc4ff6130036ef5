import { describe, expect, it } from 'vitest'
import { loadRules, parseRules } from './load.ts'
import { errors, rules } from './test-support/rules.ts'
import { watchRules } from './watch.ts'

/** The whole example of the reference, less what is not supported yet. */
const EXAMPLE = `
store: redis://127.0.0.1:6379
prefix: rate_limit
timeout: 50ms
instances: 4
keySecret: "\${KEY_SECRET:-}"
gateway:
  listen: 127.0.0.1:8080
  workers: 1
  drain: 10s
  paths: { case: insensitive, trailingSlash: ignore, allow: [] }
  cors: { origins: ["https://shop.example"] }
  trustedProxies: [10.0.0.0/8]
  clientAddress: X-Forwarded-For
  routes:
    - { path: /api/*, upstream: ["http://127.0.0.1:3000"], host: pass, stripPrefix: false, timeout: 30s }
admin:  { listen: "127.0.0.1:8083", token: "\${ADMIN_TOKEN}", readToken: "\${ADMIN_READ_TOKEN:-}" }
dimensions:
  user:   { header: x-user-id, missing: ip }
  mail:   { query: email, normalize: email, secret: true }
  net:    { address: { v4: 24, v6: 56 } }
defaults: { onStoreFailure: local, mode: enforce, headers: standard }
rules:
  - name: product-detail
    description: 800/s is 80 % of what five instances sustained in the load test of 2026-11
    match: { path: /api/product/detail, method: [GET] }
    limits:
      - { by: global, limit: 800/s, burst: 120 }
      - { by: user, limit: 5/s, overrides: { acme: 100/s, "free-*": 2/s } }
      - { name: user-daily, by: user, limit: 1000/day, algorithm: fixed-window }
      - { by: [user, route], limit: 60/m }
    cost: 1
    mode: enforce
    accuracy: exact
    onStoreFailure: local
    disclose: false
    maxWait: 0ms
`

describe('a rule file', () => {
  it('loads with everything that is supported in it, without a warning', () => {
    const file = rules(EXAMPLE, { ADMIN_TOKEN: 't' })
    expect(file.warnings).toEqual([])
    expect(file).toMatchObject({
      file: 'headgate.yaml',
      storeName: 'redis://127.0.0.1:6379',
      timeoutMs: 50,
      instances: 4,
      gateway: {
        listen: { kind: 'tcp', host: '127.0.0.1', port: 8080 },
        workers: 1,
        drainMs: 10_000,
        clientAddress: 'x-forwarded-for',
        routes: [
          { path: '/api/*', upstreams: ['http://127.0.0.1:3000'], host: 'pass', stripPrefix: false, timeoutMs: 30_000 },
        ],
      },
      admin: { token: 't', hosts: [] },
      rules: [
        {
          name: 'product-detail',
          limits: [{ name: 'global' }, { name: 'user' }, { name: 'user-daily' }, { name: 'user+route' }],
        },
      ],
    })
    expect(file.admin).not.toHaveProperty('readToken')
  })

  it('has one version for one set of rules, whatever comments and other settings say', () => {
    const { version } = rules(EXAMPLE, { ADMIN_TOKEN: 't' })
    expect(rules(`# why\n${EXAMPLE.replace('instances: 4', 'instances: 5')}`, { ADMIN_TOKEN: 'u' }).version).toBe(
      version,
    )
    expect(rules(EXAMPLE.replace('800/s,', '801/s,'), { ADMIN_TOKEN: 't' }).version).not.toBe(version)
  })

  it('may use anchors', () => {
    const file = rules(
      'rules:\n  - { name: a, description: d, limits: &l [{ by: ip, limit: 5/s }] }\n  - { name: b, description: d, limits: *l }',
    )
    expect(file.rules[1]?.limits).toHaveLength(1)
  })

  it('that is not there says so', async () => {
    await expect(loadRules('/nowhere/headgate.yaml')).rejects.toThrow(
      '/nowhere/headgate.yaml:1:1: error[HEADGATE_RULES_FILE]: there is no such file; write one, or name another with -c FILE',
    )
    await expect(loadRules('/')).rejects.toThrow('/:1:1: error[HEADGATE_RULES_FILE]: is a directory; name a file')
    await expect(loadRules('/dev/zero')).rejects.toThrow(
      '/dev/zero:1:1: error[HEADGATE_RULES_FILE]: is no regular file; name one',
    )
  })

  it.each(['', '# nothing', '---\n'])('that is empty (%j) is an error', (text) => {
    expect(errors(text)).toEqual(['1:1 VALUE : the file is empty; write at least rules: []'])
  })

  it.each(['[]', 'a', '5'])('that is %s is an error', (text) => {
    expect(errors(text)[0]).toContain('is not a mapping')
  })

  it('without rules is an error, since a misspelt key would mean no limits', () => {
    expect(errors('store: memory')[0]).toContain('VALUE rules: is missing')
  })
})

describe('a misspelt option', () => {
  it.each([
    ['parseRules.env_', () => parseRules('rules: []', { file: 'h.yaml', env_: {} } as never)],
    ['loadRules.enviroment', () => loadRules('h.yaml', { enviroment: {} } as never)],
    ['watchRules.pollms', () => watchRules('h.yaml', { pollms: 5 } as never)],
  ])('%s is refused', async (place, call) => {
    await expect((async () => call())()).rejects.toThrow(`${place}: no such option; there are `)
  })
})
