import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expand } from './expand.ts'

describe('expansion', () => {
  it('puts variables in', () => {
    expect(expand('redis://${HOST}:${PORT}', { HOST: 'h', PORT: '1' })).toEqual({ text: 'redis://h:1', expanded: true })
  })

  it('gives the default where a variable is not set or empty', () => {
    expect(expand('${X:-d}', {}).text).toBe('d')
    expect(expand('${X:-d}', { X: '' }).text).toBe('d')
    expect(expand('${X:-d}', { X: 'x' }).text).toBe('x')
    expect(expand('${X:-}', {}).text).toBe('')
    expect(expand('${X:-a:-b}', {}).text).toBe('a:-b')
  })

  it('objects to a variable that is not set or empty, by its name', () => {
    expect(expand('${X}', {}).problem).toContain('X is not set')
    expect(expand('${X}', { X: '' }).problem).toContain('X is not set or empty')
  })

  it('does not read what every object inherits', () => {
    expect(expand('${toString}', {}).problem).toContain('toString is not set')
    expect(expand('${__proto__}', {}).problem).toContain('__proto__ is not set')
  })

  it('leaves a doubled dollar as a literal', () => {
    expect(expand('$${X} $X $', { X: 'x' })).toEqual({ text: '${X} $X $', expanded: false })
  })

  it('does not expand what was put in', () => {
    expect(expand('${X}', { X: '${Y}', Y: 'y' }).text).toBe('${Y}')
  })

  it.each(['${', '${}', '${1X}', '${X-d}', '${X:+d}', '${X Y}', 'a ${X'])('objects to %s', (text) => {
    expect(expand(text, { X: 'x' }).problem).toContain('write ${NAME}')
  })

  it('never shows a value in a problem', () => {
    fc.assert(
      fc.property(fc.string(), fc.stringMatching(/^secret[0-9]{6}$/), (text, secret) => {
        expect(expand(text, { X: secret }).problem ?? '').not.toContain(secret)
      }),
    )
  })
})
