import { describe, expect, it } from 'vitest'
import { errors } from '../test-support/rules.ts'

describe('an error of YAML itself', () => {
  it.each([
    ['rules:\n  - { name: a, match: { host: *.x.com }, deny: true }', '2:31 SYNTAX rules[0].match.host'],
    ['gateway:\n  listen: [::1]:8080\nrules: []', '2:16 SYNTAX listen'],
    ['rules:\n  - name: @a\n    deny: true', '2:11 SYNTAX name'],
    ['rules: [{ name: a, description: a: b }]', 'SYNTAX'],
    ['prefix: !x a\nrules: []', '1:12 SYNTAX prefix'],
    ['prefix: *x\nrules: []', '1:9 SYNTAX prefix'],
  ])('%j has a place and ends with: quote the value', (text, place) => {
    const [error = ''] = errors(text)
    expect(error).toContain(place)
    expect(error).toMatch(/; quote the value$/)
  })

  it.each(['a: "b', 'a: [1', '\ta: 1', 'a: 1\n---\nb: 2', 'a: b: c', '- a\nb: 1', '%', 'a: "\\q"'])(
    '%j has a place',
    (text) => {
      expect(errors(text)[0]).toMatch(/^\d+:\d+ SYNTAX /)
    },
  )

  it('comes with those on other lines, each once', () => {
    expect(errors('a: @x\nb: `y\nrules: []')).toHaveLength(2)
  })

  it('is no way to exhaust the reader', () => {
    const bomb = Array.from(
      { length: 20 },
      (_, i) =>
        `a${i}: &a${i} [${Array(10)
          .fill(i === 0 ? 'x' : `*a${i - 1}`)
          .join(', ')}]`,
    ).join('\n')
    expect(errors(`${bomb}\nrules: []`).join('\n')).toContain('too many values')
    expect(errors('rules: &a [*a]').join('\n')).toContain('too deep')
  })
})
