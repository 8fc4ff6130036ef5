import { describe, expect, it } from 'vitest'
import { errors } from '../test-support/rules.ts'

const rule = (rest: string) => `rules: [{ name: a, description: d, limits: [{ by: ip, limit: 5/s }], ${rest} }]`
const gateway = (rest: string) => `gateway: { ${rest} }\nrules: []`

const LATER: [text: string, path: string][] = [
  ['slotBy: tenant\nrules: []', 'slotBy'],
  ['rulesFrom: redis\nrules: []', 'rulesFrom'],
  ['decide: { http: "127.0.0.1:8082" }\nrules: []', 'decide'],
  ['log: { decisions: {} }\nrules: []', 'log'],
  ['jwt: { keys: k }\nrules: []', 'jwt'],
  ['dimensions: { t: { jwt: tenant_id } }\nrules: []', 'dimensions.t.jwt'],
  [gateway('workers: 2'), 'gateway.workers'],
  [rule('learning: true'), 'rules[0].learning'],
  [rule('respond: {}'), 'rules[0].respond'],
  [rule('schedule: {}'), 'rules[0].schedule'],
  [rule('match: { descriptor: {} }'), 'rules[0].match.descriptor'],
]

describe('what a later version will know', () => {
  it.each(LATER)('%s is refused as not supported yet', (text, path) => {
    const found = errors(text)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(` UNSUPPORTED ${path}: `)
    expect(found[0]).toContain('not supported yet')
  })
})
