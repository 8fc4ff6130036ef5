import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../../test/fresh-build.ts'
import { folderWith, headgate } from '../test-support/headgate.ts'

beforeAll(assertFreshBuild)

const RIGHT = `
rules:
  - name: orders
    description: so that one customer leaves room for the others
    limits: [{ by: ip, limit: 5/s }, { by: global, limit: 100/s }]
`
const WARNED = 'rules: [{ name: orders, limits: [{ by: ip, limit: 5/s }] }]\n'
const BROKEN = `
rules:
  - name: orders
    description: two mistakes
    limits: [{ by: usr, limit: 5/x }]
`
const IMPOSSIBLE = `
rules:
  - name: orders
    description: four mistakes
    cost: -1
    limits:
      - { name: day, by: ip, limit: 1000003/day, burst: 1000000 }
      - { name: week, by: ip, limit: 5/week, algorithm: fixed-window, align: calendar, timeZone: Mars/Base, anchorDay: 8 }
`

let cwd = ''
beforeAll(() => {
  cwd = folderWith(
    {
      'right.yaml': RIGHT,
      'warned.yaml': WARNED,
      'broken.yaml': BROKEN,
      'impossible.yaml': IMPOSSIBLE,
      'syntax.yaml': 'rules: [',
    },
    afterAll,
  )
})

describe('headgate validate', () => {
  it('says that a file can be used, and what it holds', async () => {
    const stdout = 'right.yaml: ok, 1 rule with 2 limits, store memory\n'
    expect(await headgate(['validate', 'right.yaml'], { cwd })).toEqual({ code: 0, stdout, stderr: '' })
    expect(await headgate(['check', '-c', 'right.yaml'], { cwd })).toEqual({ code: 0, stdout, stderr: '' })
  })

  it('takes HEADGATE_CONFIG, then ./headgate.yaml', async () => {
    const named = await headgate(['validate'], { cwd, env: { HEADGATE_CONFIG: join(cwd, 'right.yaml') } })
    expect([named.code, named.stdout]).toEqual([
      0,
      `${join(cwd, 'right.yaml')}: ok, 1 rule with 2 limits, store memory\n`,
    ])
    const folder = folderWith({ 'headgate.yaml': RIGHT }, afterAll)
    const found = await headgate(['validate'], { cwd: folder })
    expect([found.code, found.stdout]).toEqual([0, './headgate.yaml: ok, 1 rule with 2 limits, store memory\n'])
  })

  it('tells all that is impossible of costs, numbers and calendars in one run, with what fits', async () => {
    const { code, stdout } = await headgate(['validate', 'impossible.yaml'], { cwd })
    const [first, ...rest] = stdout.trimEnd().split('\n')
    expect([code, first?.replace(/ error.*RULES_/, ' ')]).toEqual([
      1,
      expect.stringMatching(/^impossible\.yaml:5:11: RANGE\]: rules\[0\]\.cost: -1 /),
    ])
    expect(rest.map((line) => /limits\[\d\]\.(\w+): .*/.exec(line)?.slice(0, 2).reverse().join(' '))).toEqual([
      expect.stringMatching(/^burst .*these fit: burst 104249 or less/),
      expect.stringMatching(/^timeZone .*no time zone/),
      expect.stringMatching(/^anchorDay .*from 1 \(Monday\) to 7/),
      undefined,
    ])
    const peeked = await headgate(['peek', 'orders', 'ip=203.0.113.9', '-c', 'impossible.yaml'], { cwd })
    expect([peeked.code, peeked.stdout]).toEqual([1, ''])
  })

  it('shows every error on a line of its own with its place, and exits 1', async () => {
    const { code, stdout, stderr } = await headgate(['validate', 'broken.yaml'], { cwd })
    expect([code, stderr]).toEqual([1, ''])
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(
      /^broken\.yaml:5:20: error\[HEADGATE_RULES_REFERENCE\]: rules\[0\]\.limits\[0\]\.by: "usr"/,
    )
    expect(lines[1]).toMatch(
      /^broken\.yaml:5:32: error\[HEADGATE_RULES_VALUE\]: rules\[0\]\.limits\[0\]\.limit: "5\/x"/,
    )
    expect(lines[2]).toBe('broken.yaml: 2 errors')
  })

  it('shows warnings, which fail only with --strict', async () => {
    const { code, stdout } = await headgate(['validate', 'warned.yaml'], { cwd })
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^warned\.yaml:1:17: warning\[HEADGATE_RULES_WARNING\]: .*\nwarned\.yaml: ok, .*, 1 warning\n$/,
    )
    expect((await headgate(['validate', '--strict', 'warned.yaml'], { cwd })).code).toBe(1)
  })

  it('prints the same as JSON', async () => {
    const [right, broken] = await Promise.all(
      ['right.yaml', 'broken.yaml'].map((file) => headgate(['validate', '--json', file], { cwd })),
    )
    expect(JSON.parse(right?.stdout ?? '')).toEqual({
      file: 'right.yaml',
      valid: true,
      rules: 1,
      limits: 2,
      store: 'memory',
      problems: [],
    })
    expect(broken?.code).toBe(1)
    expect(JSON.parse(broken?.stdout ?? '')).toMatchObject({
      file: 'broken.yaml',
      valid: false,
      problems: [
        { file: 'broken.yaml', line: 5, column: 20, code: 'HEADGATE_RULES_REFERENCE', severity: 'error' },
        { path: 'rules[0].limits[0].limit' },
      ],
    })
  })

  it.each([
    [['validate', 'nope.yaml'], 'nope.yaml: there is no such file; name one that exists'],
    [['validate'], 'no rule file: ./headgate.yaml does not exist here; name one with -c FILE or HEADGATE_CONFIG'],
    [['validate', 'a.yaml', '-c', 'b.yaml'], 'two rule files are named, a.yaml and b.yaml; validate one at a time'],
    [['validate', '.'], '.:1:1: error[HEADGATE_RULES_FILE]: is a directory; name a file'],
  ])('%j exits 2 with one line', async (args, line) => {
    expect(await headgate(args, { cwd })).toEqual({ code: 2, stdout: '', stderr: `headgate: ${line}\n` })
  })

  it('names HEADGATE_CONFIG where that is wrong', async () => {
    const { code, stderr } = await headgate(['validate'], { cwd, env: { HEADGATE_CONFIG: 'nope.yaml' } })
    expect([code, stderr]).toEqual([2, 'headgate: nope.yaml: there is no such file; correct HEADGATE_CONFIG\n'])
  })
})

describe('a broken rule file', () => {
  it.each(['up', 'explain GET /', 'peek orders', 'reset orders'])(
    'stops headgate %s with exit code 1',
    async (command) => {
      const { code, stdout, stderr } = await headgate([...command.split(' '), '-c', 'broken.yaml'], { cwd })
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr.split('\n')).toHaveLength(4)
      expect(stderr).toMatch(/^broken\.yaml:5:20: error\[/)
      expect(stderr).toMatch(/\nheadgate: nothing was done: correct the rule file first\n$/)
    },
  )

  it('is JSON with --json', async () => {
    const { code, stdout } = await headgate(['peek', 'orders', '-c', 'syntax.yaml', '--json'], { cwd })
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 'HEADGATE_RULES_SYNTAX', problems: [{ file: 'syntax.yaml', severity: 'error' }] },
    })
  })
})
