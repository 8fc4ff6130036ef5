import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keys, rules } from '../test-support/rules.ts'
import { DEFAULT_PATHS, normalizePath, PATH_EXCEPTIONS, type PathSettings } from './normalize.ts'

const allowing = (...allow: PathSettings['allow']): PathSettings => ({ ...DEFAULT_PATHS, allow })
const pathOf = (target: string, settings?: PathSettings) => {
  const result = normalizePath(target, settings)
  return result.ok ? result.path : `refused: ${result.problem}`
}

describe('a path', () => {
  it.each([
    ['/', '/'],
    ['/login', '/login'],
    ['/Login', '/Login'],
    ['/login/', '/login/'],
    ['//login', '/login'],
    ['/a///b//', '/a/b/'],
    ['/./login', '/login'],
    ['/a/../login', '/login'],
    ['/a/..', '/'],
    ['/a/b/..', '/a/'],
    ['/a/.', '/a/'],
    ['/../../login', '/login'],
    ['/a//../b', '/b'],
    ['/%2e%2E/login', '/login'],
    ['/%6Cogin', '/login'],
    ['/a%7eb%2dc', '/a~b-c'],
    ['/a%3ab', '/a%3Ab'],
    ['/caf%c3%a9', '/caf%C3%A9'],
    ['/caf\u00c3\u00a9', '/caf%C3%A9'],
    ['/a|b"<>^`{}[]', '/a%7Cb%22%3C%3E%5E%60%7B%7D%5B%5D'],
    ['/...', '/...'],
    ['/.a', '/.a'],
    ['/a%20b', '/a%20b'],
    ['/100%25', '/100%25'],
    ['/100%25zz', '/100%25zz'],
    ['http://host/login', '/login'],
    ['HTTPS://host:8080//login', '/login'],
    ['http://host', '/'],
    ['http://host?x', '/'],
  ])('%s is %s', (target, path) => {
    expect(pathOf(target)).toBe(path)
  })

  it.each([
    '/a%2Fb',
    '/a%2f',
    '/a%5Cb',
    '/a\\b',
    '/login;a=b',
    '/login#x',
    '/a?b#c',
    '/a%00',
    '/a\u0000',
    '/a%',
    '/a%z1',
    '/a%4',
    '/%256Cogin',
    '/%25%36%43ogin',
    '/%ff',
    '/%C0%AE%C0%AE/login',
    '/%ED%A0%80',
    '/caf\u00e9',
    '/a b',
    '/a\tb',
    '/a\u0100',
    '/a?b c',
    'login',
    '',
    '*',
    '?x',
    'host:443',
    'ftp://host/login',
    'http:///login',
    'http://u:p@host/login',
  ])('%j is refused', (target) => {
    expect(pathOf(target)).toMatch(/^refused: /)
  })

  it('keeps the query apart, as it came', () => {
    expect(normalizePath('/a/../b?x=%6C//../&y?z')).toEqual({ ok: true, path: '/b', query: 'x=%6C//../&y?z' })
    expect(normalizePath('/?')).toEqual({ ok: true, path: '/', query: '' })
  })

  it('of an absolute target comes with its host', () => {
    expect(normalizePath('http://Host:81/a?b')).toEqual({ ok: true, path: '/a', query: 'b', authority: 'Host:81' })
  })

  it.each([
    ['%2F', '/a%2fb', '/a%2Fb'],
    ['%5C', '/a%5cb', '/a%5Cb'],
    ['\\', '/a\\b', '/a\\b'],
    [';', '/a;b=c', '/a;b=c'],
    ['#', '/a#b', '/a#b'],
    ['%00', '/a%00', '/a%00'],
    ['%25', '/%256Cogin', '/%256Cogin'],
    ['%', '/a%zz', '/a%zz'],
    ['%', '/%ff', '/%FF'],
  ] as const)('with %s allowed, %s is %s', (exception, target, path) => {
    expect(pathOf(target)).toMatch(/^refused: /)
    expect(pathOf(target, allowing(exception))).toBe(path)
  })

  it('is refused where letting broken escapes through would make another escape', () => {
    expect(pathOf('/%%411', allowing('%'))).toMatch(/^refused: /)
  })
})

const piece = fc.constantFrom(
  '/',
  '//',
  '.',
  '..',
  'a',
  'B',
  '%2e',
  '%2E',
  '%41',
  '%2f',
  '%5c',
  '%25',
  '25',
  '2',
  'e',
  '%',
  ';',
  '#',
  '\\',
  '%00',
  '?',
  'é',
  '\u00c3\u00a9',
  '%c3%a9',
  '%ff',
  '|',
  ':',
  '~',
  ' ',
)
const target = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`)
const settings = fc.subarray([...PATH_EXCEPTIONS]).map((allow) => allowing(...allow))

describe('normalising', () => {
  it('is idempotent: what is forwarded would be matched the same', () => {
    fc.assert(
      fc.property(target, settings, (raw, given) => {
        const once = normalizePath(raw, given)
        if (!once.ok) return
        expect(normalizePath(once.path, given)).toEqual({ ok: true, path: once.path, query: '' })
      }),
      { numRuns: 2000 },
    )
  })

  it('leaves no empty segment, no dot segment, and nothing that is refused', () => {
    fc.assert(
      fc.property(target, (raw) => {
        const result = normalizePath(raw)
        if (!result.ok) return
        expect(result.path).toMatch(/^\//)
        expect(result.path).not.toMatch(/\/\/|\/\.{1,2}(\/|$)|[;#\\\s]|%2F|%5C|%00|%25[0-9A-F]{2}/i)
        expect(decodeURIComponent(result.path)).toBeTypeOf('string')
      }),
      { numRuns: 2000 },
    )
  })

  it('never lets through what was not allowed, whatever else is', () => {
    fc.assert(
      fc.property(target, settings, (raw, given) => {
        const result = normalizePath(raw, given)
        if (!result.ok) return
        if (!given.allow.includes('%2F')) expect(result.path).not.toMatch(/%2F/i)
        if (!given.allow.includes(';')) expect(result.path).not.toContain(';')
        if (!given.allow.includes('%25')) expect(result.path).not.toMatch(/%25[0-9A-F]{2}/i)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('a rule on /login', () => {
  const file = rules(
    'rules: [{ name: login, description: d, match: { path: /login }, limits: [{ by: ip, limit: 3/m }] }]',
  )
  const counted = (raw: string) => {
    const result = normalizePath(raw)
    return result.ok ? keys(file, { path: result.path, query: result.query }) : 400
  }

  it.each([
    '/login',
    '/login?x=1',
    '/login/',
    '//login',
    '/./login',
    '/a/../login',
    '/%6Cogin',
    '/LOGIN',
    'http://host/login',
    '/%2e/login',
    '/log%69n/?',
  ])('counts %s in one bucket (coder/coder#27273)', (raw) => {
    expect(counted(raw)).toEqual(['login:ip:203.0.113.9'])
  })

  it.each(['/login;a=b', '/login%2F', '/login#x', '/%256Cogin', '/login%5C', '/login%00', '/login%'])(
    'refuses %s (parse-community/parse-server#10501)',
    (raw) => {
      expect(counted(raw)).toBe(400)
    },
  )

  it('is not met by other paths', () => {
    for (const raw of ['/', '/logi', '/login/x', '/logins', '/x/login']) expect(counted(raw)).toEqual([])
  })
})
