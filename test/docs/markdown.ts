import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')
const MADE = new Set(['.git', '.cache', 'coverage', 'node_modules', 'dist'])

/** A document of the repository. */
export interface Document {
  /** From the root, such as `docs/reference/errors.md`. */
  readonly name: string
  /** Without its code blocks. */
  readonly prose: string
  readonly blocks: readonly Block[]
  readonly headings: readonly Heading[]
}

/** A fenced piece of code. */
export interface Block {
  readonly language: string
  readonly code: string
  /** Where its first line of code stands, from 1. */
  readonly line: number
}

export interface Heading {
  readonly level: number
  readonly text: string
  /** What a link calls it. */
  readonly anchor: string
}

/** All documents that the repository keeps. */
export function documents(folder = ROOT): Document[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return MADE.has(entry.name) ? [] : documents(path)
    return entry.name.endsWith('.md') ? [read(path)] : []
  })
}

export function document(name: string): Document {
  return read(join(ROOT, name))
}

/** The cells of all tables below a heading of this text, a row after the other; without it, of the whole document. */
export function rows({ prose }: Document, under?: string): string[][] {
  const text = under === undefined ? prose : sectionOf(prose, under)
  const lines = text.split('\n').filter((line) => line.startsWith('|') && !/^\|[\s|:-]+\|$/.test(line))
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  )
}

/** What stands between a heading and the next one of any level. */
function sectionOf(prose: string, heading: string): string {
  const lines = prose.split('\n')
  const from = lines.findIndex((line) => line.replace(/^#+ /, '') === heading && line.startsWith('#'))
  if (from < 0) return ''
  const length = lines.slice(from + 1).findIndex((line) => /^#+ /.test(line))
  return lines.slice(from + 1, length < 0 ? undefined : from + 1 + length).join('\n')
}

function read(path: string): Document {
  const blocks: Block[] = []
  const prose: string[] = []
  let open: { language: string; code: string[]; line: number; indent: number } | undefined
  readFileSync(path, 'utf8')
    .split('\n')
    .forEach((line, i) => {
      const fence = /^(\s*)```(\S*)/.exec(line)
      if (open === undefined && fence === null) prose.push(line)
      else if (open === undefined && fence) {
        open = { language: fence[2] ?? '', code: [], line: i + 2, indent: fence[1]?.length ?? 0 }
      } else if (open && fence) {
        blocks.push({ language: open.language, code: `${open.code.join('\n')}\n`, line: open.line })
        open = undefined
      } else if (open) open.code.push(line.slice(open.indent))
    })
  return { name: relative(ROOT, path), prose: prose.join('\n'), blocks, headings: headingsOf(prose) }
}

function headingsOf(lines: readonly string[]): Heading[] {
  const seen = new Map<string, number>()
  return lines.flatMap((line) => {
    const parts = /^(#{1,6}) (.*)$/.exec(line)
    if (!parts) return []
    const [, marks = '', text = ''] = parts
    const slug = slugOf(text)
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return [{ level: marks.length, text, anchor: times === 0 ? slug : `${slug}-${times}` }]
  })
}

/** As GitHub makes them. */
function slugOf(text: string): string {
  return text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}
