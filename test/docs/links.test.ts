import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Document, documents, ROOT } from './markdown.ts'

const all = documents()
const inFolder = (name: string, file: string) => relative(ROOT, join(ROOT, dirname(name), decodeURIComponent(file)))
const byName = new Map(all.map((each) => [each.name, each]))

function relativeLinks({ prose }: Document): string[] {
  const plain = prose.replace(/`[^`\n]*`/g, '')
  return [...plain.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/i.test(target))
}

describe.each(all.map((each) => [each.name, each] as const))('%s', (name, each) => {
  it('links only to files and headings that exist', () => {
    const broken = relativeLinks(each).filter((target) => {
      const [file = '', anchor] = target.split('#')
      const path = file === '' ? name : inFolder(name, file)
      if (!existsSync(join(ROOT, path))) return true
      const headings = byName.get(path)?.headings
      return anchor !== undefined && !headings?.some((heading) => heading.anchor === anchor)
    })
    expect(broken).toEqual([])
  })
})

it('leads to every document of docs from another one', () => {
  const reached = new Set(
    all.flatMap((each) => relativeLinks(each).map((target) => inFolder(each.name, target.split('#')[0] ?? ''))),
  )
  const orphans = all.map(({ name }) => name).filter((name) => name.startsWith('docs/') && !reached.has(name))
  expect(orphans).toEqual([])
})
