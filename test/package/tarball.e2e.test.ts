import { existsSync } from 'node:fs'
import { appendFile, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../fresh-build.ts'
import { copyRepository, ROOT, temporaryFolder } from './copy.ts'
import { run } from './run.ts'

const PACKAGES = ['limiter', 'rules', 'gateway', 'cli'] as const
const tool = (path: string) => join(ROOT, 'node_modules', path)

const folders: string[] = []
const tarballs = {} as Record<(typeof PACKAGES)[number], string>

beforeAll(async () => {
  assertFreshBuild()
  // In a copy, for packing takes the source condition out of package.json for a while.
  const copy = await copyRepository({ dist: true })
  const packed = await temporaryFolder()
  folders.push(copy, packed)
  for (const name of PACKAGES) {
    const folder = join(copy, 'packages', name)
    const before = await readFile(join(folder, 'package.json'), 'utf8')
    const { code, output } = await run(folder, 'npm', 'pack', '--silent', `--pack-destination=${packed}`)
    expect(code, output).toBe(0)
    tarballs[name] = join(packed, output.trim().split('\n').at(-1) ?? '')
    expect(await readFile(join(folder, 'package.json'), 'utf8')).toBe(before)
  }
}, 120_000)

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

/** A project into which the tarballs are installed. */
async function projectWith(
  names: readonly (typeof PACKAGES)[number][],
  files: Record<string, string>,
): Promise<string> {
  const project = await temporaryFolder()
  folders.push(project)
  await writeFile(join(project, 'package.json'), '{ "name": "project", "private": true }')
  const paths = names.map((name) => tarballs[name])
  const { code, output } = await run(project, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', ...paths)
  expect(code, output).toBe(0)
  for (const [file, text] of Object.entries(files)) await writeFile(join(project, file), text)
  return project
}

/** @returns what the strict compiler says, with a consumer's settings; the packages' own types are checked too */
async function typeCheck(project: string, options: Record<string, unknown>): Promise<string> {
  const compilerOptions = { strict: true, noEmit: true, target: 'es2022', types: [], ...options }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['use.*'] }))
  return (await run(project, 'node', tool('typescript/bin/tsc'), '-p', '.')).output
}

it('is not made from a build that is older than its sources', async () => {
  const copy = folders[0] ?? ''
  const stale = join(copy, 'packages/cli')
  await appendFile(join(stale, 'src/index.ts'), '// changed')
  const { code, output } = await run(stale, 'npm', 'pack', '--silent')
  expect(code).not.toBe(0)
  expect(output).toContain('The build is stale. Run: npm run build')
})

describe.each(PACKAGES)('the tarball of packages/%s', (name) => {
  it('is clean for publint', async () => {
    const { code, output } = await run(ROOT, 'node', tool('publint/src/cli.js'), 'run', tarballs[name], '--strict')
    expect(code, output).toBe(0)
  })

  it('has the right types however an ESM-only package is imported', async () => {
    const attw = tool('@arethetypeswrong/cli/dist/index.js')
    const { code, output } = await run(ROOT, 'node', attw, tarballs[name], '--profile=esm-only', '--no-emoji')
    expect(code, output).toBe(0)
  })
})

describe('the library, installed from its tarball alone', () => {
  const body = `
const second = tokenBucket({ limit: 1, period: '1s' })
const limiter = createLimiter({ name: 'packed', store: memoryStore(), limits: { second } })
`
  const imports = "import { createLimiter, memoryStore, tokenBucket } from 'headgate'\n"
  const requires = "const { createLimiter, memoryStore, tokenBucket } = require('headgate')\n"
  const use = "limiter.check({ second: 'ann' }).then((decision) => console.log('allowed', decision.allowed))\n"
  const typed = `
export const allowed: Promise<boolean> = limiter.check({ second: 'ann' }).then((decision) => decision.allowed)
// @ts-expect-error: there is no limit of this name
limiter.check({ minute: 'ann' }).catch(() => undefined)
`
  let project: string
  let manifest: { exports: Record<string, string | Record<string, string>>; dependencies?: object }

  beforeAll(async () => {
    project = await projectWith(['limiter'], {
      'use.mjs': imports + body + use,
      'use.cjs': requires + body + use,
      'use.mts': imports + body + typed,
      'use.cts': imports + body + typed,
    })
    manifest = JSON.parse(await readFile(join(project, 'node_modules/headgate/package.json'), 'utf8'))
  }, 60_000)

  it('brings nothing else along', async () => {
    const installed = (await readdir(join(project, 'node_modules'))).filter((entry) => !entry.startsWith('.'))
    expect(installed).toEqual(['headgate'])
    expect(manifest.dependencies).toBeUndefined()
  })

  it('has every file that its exports name, and does not name its sources', () => {
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? target : Object.values(target),
    )
    expect(targets.length).toBeGreaterThan(5)
    const missing = targets.filter(
      (target) => !existsSync(join(project, 'node_modules/headgate', target.replace('*', 'decide.lua'))),
    )
    expect(missing).toEqual([])
  })

  it('imports every entry with nothing else installed, and ends by itself', async () => {
    const entries = Object.keys(manifest.exports).filter((entry) => !/\*|json$/.test(entry))
    expect(entries).toContain('./redis')
    const text = entries.map((entry) => `await import('headgate${entry.slice(1)}')`).join('\n')
    await writeFile(join(project, 'entries.mjs'), text)
    expect(await run(project, 'node', 'entries.mjs')).toEqual({ code: 0, output: '' })
  })

  it.each(['use.mjs', 'use.cjs'])('limits in %s', async (file) => {
    expect(await run(project, 'node', file)).toEqual({ code: 0, output: 'allowed true\n' })
  })

  it('type-checks strictly in ESM and CommonJS with module node20, even without the types of Node', async () => {
    expect(await typeCheck(project, { module: 'node20' })).toBe('')
  })

  it('type-checks strictly for a bundler', async () => {
    await rm(join(project, 'use.cts'), { force: true })
    expect(await typeCheck(project, { module: 'esnext', moduleResolution: 'bundler' })).toBe('')
  })

  it('is recognised as one error class whether imported or required', async () => {
    const text = `
import { createRequire } from 'node:module'
import { HeadgateError } from 'headgate'
console.log(createRequire(import.meta.url)('headgate').HeadgateError === HeadgateError)
`
    await writeFile(join(project, 'brand.mjs'), text)
    expect((await run(project, 'node', 'brand.mjs')).output).toContain('true')
  })
})

describe('all four packages, installed from their tarballs', () => {
  let project: string

  beforeAll(async () => {
    project = await projectWith(PACKAGES, {})
  }, 120_000)

  it('put the command line on the path', async () => {
    const { code, output } = await run(project, 'npx', '--no', '--', 'headgate', '--help')
    expect(code, output).toBe(0)
    expect(output).toContain('headgate')
  })

  it('type-check together, strictly', async () => {
    const text = `
import { startGateway } from '@headgate/gateway'
import { loadRules, parseRules } from '@headgate/rules'
export { loadRules, parseRules, startGateway }
`
    await writeFile(join(project, 'use.mts'), text)
    for (const name of ['@types/node', 'undici-types']) {
      await mkdir(dirname(join(project, 'node_modules', name)), { recursive: true })
      if (!existsSync(join(project, 'node_modules', name)))
        await symlink(tool(name), join(project, 'node_modules', name))
    }
    expect(await typeCheck(project, { module: 'node20', types: ['node'] })).toBe('')
  })
})

describe('in the repository', () => {
  // Not `npx --no headgate --help`: npx takes the name for the value of `--no`, and `--help` for its own.
  it.each(['headgate --help', 'headgate help', 'headgate up --help'])('npx %s works', async (line) => {
    const { code, output } = await run(ROOT, 'npx', ...line.split(' '))
    expect(code, output).toBe(0)
    expect(output).toMatch(/Usage: headgate/)
  })

  it("npx headgate --version says headgate's own", async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'packages/cli/package.json'), 'utf8'))
    expect(await run(ROOT, 'npx', 'headgate', '--version')).toEqual({ code: 0, output: `${version}\n` })
  })
})
