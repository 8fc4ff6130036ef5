import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_PATHS, type PathSettings } from './normalize.ts'
import { PathTrie } from './path-trie.ts'
import { isPattern, type Pattern, parsePattern } from './pattern.ts'

function pattern(text: string, settings: PathSettings = DEFAULT_PATHS): Pattern {
  const parsed = parsePattern(text, settings)
  if (!isPattern(parsed)) throw new Error(parsed.message)
  return parsed
}

function matches(text: string, path: string, settings: PathSettings = DEFAULT_PATHS): boolean {
  const trie = new PathTrie<string>(settings)
  trie.add(pattern(text, settings), text)
  return trie.matches(path)
}

const STRICT = { ...DEFAULT_PATHS, trailingSlashStrict: true }
const CASED = { ...DEFAULT_PATHS, caseSensitive: true }

describe('a pattern', () => {
  it.each([
    ['/', '/', true],
    ['/', '/a', false],
    ['/a', '/a', true],
    ['/a', '/a/', true],
    ['/a/', '/a', true],
    ['/a', '/A', true],
    ['/A', '/a', true],
    ['/a', '/a/b', false],
    ['/a/*', '/a', true],
    ['/a/*', '/a/', true],
    ['/a/*', '/a/b/c/', true],
    ['/a/*', '/ab', false],
    ['/*', '/', true],
    ['/*', '/x/y', true],
    ['/a/:p', '/a/x', true],
    ['/a/:p', '/a/x/', true],
    ['/a/:p', '/a', false],
    ['/a/:p', '/a/', false],
    ['/a/:p', '/a/x/y', false],
    ['/:p/b/*', '/a/b', true],
    ['/:p/b/*', '/a/c', false],
    ['/v1/models:predict', '/v1/models%3Apredict', true],
    ['/a%3Ab', '/a:b', true],
    ['/café', '/caf%C3%A9', true],
    ['/a%2Ab', '/a*b', true],
  ])('%s on %s: %s', (text, path, expected) => {
    expect(matches(text, path)).toBe(expected)
  })

  it('tells one final slash apart where the settings say so', () => {
    expect(matches('/a', '/a/', STRICT)).toBe(false)
    expect(matches('/a/', '/a/', STRICT)).toBe(true)
    expect(matches('/a/', '/a', STRICT)).toBe(false)
    expect(matches('/', '/', STRICT)).toBe(true)
    expect(matches('/a/:p', '/a/', STRICT)).toBe(false)
    expect(matches('/a/*', '/a', STRICT)).toBe(true)
    expect(matches('/a/*', '/a/', STRICT)).toBe(true)
  })

  it('tells cases apart where the settings say so', () => {
    expect(matches('/a', '/A', CASED)).toBe(false)
    expect(matches('/É', '/%C3%A9', DEFAULT_PATHS)).toBe(false)
  })

  it.each([
    ['a', 'begins with /'],
    ['/a?b', 'leave out the ?'],
    ['/a*', 'only a final /*'],
    ['/*/a', 'only a final /*'],
    ['/:', 'write :name'],
    ['/:a-b', 'write :name'],
    ['/:a/:a', ':a twice'],
    ['/a;b', 'can match no request'],
    ['/a%2Fb', 'can match no request'],
    ['/a/b{id}', 'a parameter is written :name; write :name, or the character as an escape, such as %7B'],
    ['/a/[0-9]+', 'has brackets'],
  ])('%s is refused: %s', (text, message) => {
    const parsed = parsePattern(text, DEFAULT_PATHS)
    expect(isPattern(parsed) ? 'read' : parsed.message).toContain(message)
  })

  it.each([
    ['/a//b', '/a/b'],
    ['/a/../b', '/b'],
    ['/./a/*', '/a/*'],
  ])('%s is refused, since requests arrive as %s', (text, fix) => {
    expect(parsePattern(text, DEFAULT_PATHS)).toMatchObject({ fix })
  })

  it.each([
    ['/api/orders/{id}', '/api/orders/:id'],
    ['/a/{id:int}/b/{other}', '/a/:id/b/:other'],
    ['/a/<id>', '/a/:id'],
    ['/a/<int:id>/b', '/a/:id/b'],
    ['/a/[id]', '/a/:id'],
    ['/a/{path*}', '/a/*'],
    ['/a/{*path}', '/a/*'],
    ['/a/[...path]', '/a/*'],
  ])("%s is another router's spelling of %s", (text, fix) => {
    expect(parsePattern(text, DEFAULT_PATHS)).toMatchObject({ message: expect.stringContaining(':name'), fix })
  })

  it('matches an escaped bracket as the character', () => {
    expect(matches('/a/%7Bid%7D', '/a/%7Bid%7D', DEFAULT_PATHS)).toBe(true)
  })
})

describe('a trie', () => {
  it('finds every pattern that fits, static, parameter and wildcard alike', () => {
    const trie = new PathTrie<string>(DEFAULT_PATHS)
    for (const text of ['/*', '/a/*', '/a/b', '/a/:p', '/:p/b', '/:p/:q', '/:p/*', '/c', '/a/b/c'])
      trie.add(pattern(text), text)
    trie.addEverywhere('everywhere')
    const found: string[] = []
    trie.find('/a/b', found)
    expect(found.sort()).toEqual(['/*', '/:p/*', '/:p/:q', '/:p/b', '/a/*', '/a/:p', '/a/b', 'everywhere'])
  })

  it('finds what looking at the patterns one by one finds', () => {
    const segment = fc.constantFrom('a', 'b', ':p', ':q', 'A', '%3A')
    const text = fc
      .tuple(fc.uniqueArray(segment, { maxLength: 4 }), fc.boolean())
      .map(([segments, open]) => `/${[...segments, ...(open ? ['*'] : [])].join('/')}`)
    const path = fc
      .array(fc.constantFrom('a', 'b', 'c', 'A', ':', '%3A'), { maxLength: 5 })
      .map((segments) => `/${segments.join('/')}`)
    fc.assert(
      fc.property(fc.uniqueArray(text, { maxLength: 8 }), path, fc.boolean(), (texts, given, strict) => {
        const settings = strict ? STRICT : DEFAULT_PATHS
        const trie = new PathTrie<string>(settings)
        for (const each of texts) trie.add(pattern(each, settings), each)
        const found: string[] = []
        trie.find(given, found)
        expect(found.sort()).toEqual(texts.filter((each) => byHand(each, given, strict)).sort())
      }),
      { numRuns: 1000 },
    )
  })
})

/** The rules of matching once more, in the plainest words. */
function byHand(text: string, path: string, strict: boolean): boolean {
  const plain = (each: string) => {
    const cut = !strict && each.endsWith('/') ? each.slice(0, -1) : each
    return cut === ''
      ? []
      : cut
          .slice(1)
          .split('/')
          .map((part) => decodeURIComponent(part.toLowerCase()))
  }
  const wanted = text.endsWith('/*') ? plain(text.slice(0, -2)) : plain(text)
  const given = plain(path)
  const length = text.endsWith('/*') ? given.length >= wanted.length : given.length === wanted.length
  return length && wanted.every((part, i) => (isParameter(text, i) ? given[i] !== '' : part === given[i]))
}

function isParameter(text: string, index: number): boolean {
  return text.split('/')[index + 1]?.startsWith(':') ?? false
}
