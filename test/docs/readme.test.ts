import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { document, ROOT } from './markdown.ts'

const english = document('README.md')
const chinese = document('README.zh-CN.md')

afterEach(() => vi.restoreAllMocks())

describe('README.md', () => {
  it('shows code that runs, and says truly what it prints', async () => {
    const code = english.blocks.find(({ language }) => language === 'ts')?.code ?? ''
    expect(code.trimEnd().split('\n')).toHaveLength(15)
    const printed: string[] = []
    vi.spyOn(console, 'log').mockImplementation((...values) => void printed.push(values.join(' ')))
    // In the repository, so that packages are found as they are by anybody here.
    const folder = join(ROOT, '.cache/docs')
    const file = join(folder, `readme-${process.pid}.ts`)
    await mkdir(folder, { recursive: true })
    await writeFile(file, code)
    try {
      await import(file)
    } finally {
      await rm(file)
    }
    const [, last] = /The last line that it prints is `([^`]+)`/.exec(english.prose) ?? []
    expect(printed.at(-1)).toBe(last)
  })

  it('shows figures only beside the raw results that they come from', () => {
    expect(english.prose).toContain('](bench/results)')
    for (const table of ['library', 'gateway']) {
      expect(existsSync(join(ROOT, `bench/results/${table}.json`)), table).toBe(true)
    }
  })
})

describe('README.zh-CN.md', () => {
  it('has the headings of README.md, level by level', () => {
    expect(chinese.headings.map(({ level }) => level)).toEqual(english.headings.map(({ level }) => level))
  })

  it('has the same code', () => {
    const code = ({ blocks }: typeof english) => blocks.map(({ language, code: text }) => [language, text])
    expect(code(chinese)).toEqual(code(english))
  })

  it('leads to the same places', () => {
    const links = ({ prose }: typeof english) =>
      [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target]) => target)
        .filter((target) => !/^README/.test(target ?? ''))
    expect(links(chinese)).toEqual(links(english))
  })
})
