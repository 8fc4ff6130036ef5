import { execFile } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { assertFreshBuild, HEADGATE_BIN } from '../../../test/fresh-build.ts'
import { folderWith, headgate, plainEnv } from './test-support/headgate.ts'

beforeAll(assertFreshBuild)

describe('headgate', () => {
  it.each(['up', 'validate', 'explain', 'peek', 'reset'])(
    '%s --help shows examples and exit codes',
    async (command) => {
      const { code, stdout, stderr } = await headgate([command, '--help'])
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(/^Usage: headgate /)
      expect(stdout).toContain(`Examples:\n  headgate ${command}`)
      expect(stdout).toContain('Exit codes: 0 ')
      expect(stdout).toContain('-c, --config <file>')
      expect(stdout).toContain('--json')
    },
  )

  it('--help names every command, with examples', async () => {
    const { code, stdout } = await headgate(['--help'])
    expect(code).toBe(0)
    for (const command of ['up', 'validate|check', 'explain', 'peek', 'reset'])
      expect(stdout).toContain(`\n  ${command} `)
    expect(stdout).toContain('Examples:\n  headgate up -c headgate.yaml')
  })

  it('help COMMAND is the help of the command', async () => {
    const [asked, flag] = await Promise.all([headgate(['help', 'peek']), headgate(['peek', '--help'])])
    expect(asked).toEqual(flag)
  })

  it('without a command shows the help on stderr and exits 2', async () => {
    const { code, stdout, stderr } = await headgate([])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^Usage: headgate /)
  })

  it('--version prints the version', async () => {
    const { code, stdout } = await headgate(['--version'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it.each([
    [['pek'], "unknown command 'pek'; did you mean peek"],
    [['frobnicate'], "unknown command 'frobnicate'; see headgate --help"],
    [['peek'], "missing required argument 'rule[/limit]'; see headgate peek --help"],
    [['peek', 'a', '--jsn'], "unknown option '--jsn'; did you mean --json"],
    [['validate', '-c'], "option '-c, --config <file>' argument missing; see headgate validate --help"],
    [['up', 'now.yaml'], 'up takes no file by itself; write -c now.yaml: headgate up -c now.yaml'],
    [['help', 'nosuch'], "unknown command 'nosuch'; see headgate --help"],
    [['help', 'pek'], "unknown command 'pek'; did you mean peek"],
    [['-c', 'a.yaml', 'up'], '-c stands before the command; write it after the command: headgate up -c …'],
    [['-k', 'user=1', 'peek'], '-k stands before the command; write it after the command: headgate peek -k …'],
    [['--jsn'], "unknown option '--jsn'; see headgate --help"],
  ])('%j is refused in one line that says what to do, with exit code 2', async (args, line) => {
    expect(await headgate(args)).toEqual({ code: 2, stdout: '', stderr: `headgate: ${line}\n` })
  })

  it('with --json prints usage errors as JSON too', async () => {
    const { code, stdout, stderr } = await headgate(['pek', '--json'])
    expect(code).toBe(2)
    const message = "unknown command 'pek'; did you mean peek"
    expect(JSON.parse(stdout)).toEqual({ error: { code: 'HEADGATE_USAGE', message } })
    expect(stderr).toBe(`headgate: ${message}\n`)
  })

  it('with --json prints errors of up as a line of the log, as its events are', async () => {
    const files = { 'broken.yaml': 'rules: [{ name: a }]', 'bare.yaml': 'rules: []' }
    const cwd = folderWith(files, onTestFinished)
    const lines = [['-c', 'broken.yaml'], ['-c', 'bare.yaml'], ['-c', 'none.yaml'], ['--jsn']]
    for (const args of lines) {
      const { stdout } = await headgate(['up', ...args, '--json'], { cwd })
      expect(stdout.trimEnd().split('\n')).toHaveLength(1)
      const event = JSON.parse(stdout) as object
      expect(event).toMatchObject({ level: 50, code: expect.stringMatching(/^HEADGATE_/) })
      expect(event).toHaveProperty('msg')
    }
  })

  it('does not complain when nobody reads on', async () => {
    const command = `"${process.execPath}" "${HEADGATE_BIN}" --help | head -n 1`
    const stderr = await new Promise<string>((resolve) => {
      execFile('sh', ['-c', command], { env: plainEnv() }, (_error, _stdout, text) => resolve(text))
    })
    expect(stderr).toBe('')
  })

  it('colours only what a terminal shows, and nothing with NO_COLOR', async () => {
    const asTerminal = `
      import { WriteStream } from 'node:tty'
      process.stdout.isTTY = true
      process.stdout.getColorDepth = WriteStream.prototype.getColorDepth
    `
    const env = {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(asTerminal)}`,
      TERM: 'xterm-256color',
    }
    const cwd = folderWith({ 'headgate.yaml': 'rules: []' }, onTestFinished)
    const [terminal, noColor, pipe] = await Promise.all([
      headgate(['validate'], { cwd, env }),
      headgate(['validate'], { cwd, env: { ...env, NO_COLOR: '1' } }),
      headgate(['validate'], { cwd }),
    ])
    expect(terminal.stdout).toContain('\u001b[32mok\u001b[39m')
    expect([noColor.stdout, pipe.stdout]).toEqual([stripVTControlCharacters(terminal.stdout), noColor.stdout])
  })
})
