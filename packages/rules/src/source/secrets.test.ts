import { describe, expect, it } from 'vitest'
import { errors, rules } from '../test-support/rules.ts'

describe('secrets', () => {
  const SECRET = 'hunter2'
  const texts = [
    'admin: { token: "${T}", readToken: "${T}", listen: ":1", hosts: "${T}" }\nrules: []',
    `admin: { token: "a ${SECRET}", readToken: [${SECRET}] }\nrules: []`,
    `keySecret: [${SECRET}]\nrules: []`,
    `store: redis+sentinel://u:${SECRET}@h\nrules: []`,
    `stores: redis://u:${SECRET}@h\nrules: []`,
    `prefix: redis://u:${SECRET}@h\nrules: []`,
    `gateway: { routes: [{ path: /a, upstream: "http://u:${SECRET}@h" }] }\nrules: []`,
    `gateway: { routes: [{ path: /a, upstream: "u:${SECRET}@h" }] }\nrules: []`,
    `admin: { token: *${SECRET} }\nrules: []`,
    `admin: { token: @${SECRET} }\nrules: []`,
    `admin: { token: "${SECRET} }\nrules: []`,
    `admin: { token: !${SECRET} x }\nrules: []`,
    `admin:\n  token: a: ${SECRET}\nrules: []`,
    'prefix: "${T} x"\nrules: []',
    'timeout: "${T}"\ninstances: "${T}"\nrules: []',
    'gateway: { listen: "${T}", clientAddress: "${T} x", trustedProxies: ["${T}"], cors: { origins: ["https://${T}.example/"] } }\nrules: []',
    'gateway: { routes: [{ path: "/${T}//b", upstream: "http://${T}/x" }, { path: "/${T}", upstream: "http://h" }, { path: "/${T}", upstream: "http://h" }] }\nrules: []',
    'rules: [{ name: "${T} x", mode: "${T}", match: { path: "${T}", method: "${T}", host: "${T} ", ip: "${T}" }, limits: [{ by: "${T}", limit: "${T}", algorithm: "${T}" }] }]',
    'rules: [{ name: "${T}", deny: true }, { name: "${T}", deny: true }]',
    'dimensions: { user: { header: "${T} x", missing: "${T}" } }\nrules: []',
  ]

  it.each(texts)('are in no message: %s', (text) => {
    const found = errors(text, { T: SECRET })
    expect(found.length).toBeGreaterThan(0)
    expect(found.join('\n')).not.toContain(SECRET)
  })

  it('are in no warning', () => {
    const found = rules(
      'store: "redis://u:${T}@h"\nadmin: { token: "${T}" }\nrules: [{ name: "${T}", match: { header: { x: "${T}" } }, deny: true }]',
      { T: SECRET },
    ).warnings
    expect(JSON.stringify(found)).not.toContain(SECRET)
  })
})
