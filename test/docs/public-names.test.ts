import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { documents, ROOT } from './markdown.ts'

/** What the reference says in code: inline, and in blocks. */
const code = documents()
  .filter(({ name }) => name.startsWith('docs/reference/'))
  .flatMap(({ prose, blocks }) => [
    ...[...prose.matchAll(/`[^`]+`/g)].map(([text]) => text),
    ...blocks.map((b) => b.code),
  ])
  .join('\n')

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

/** The door of every public entry: its name and its source. */
function entries(folder: string): [entry: string, file: string][] {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest
  return Object.entries(exports).flatMap(([path, target]) => {
    const source = typeof target === 'string' ? undefined : target['@headgate/source']
    return source === undefined ? [] : [[join(name, path), join(ROOT, folder, source)]]
  })
}

function namesOf(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ES2022)
  return source.statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement) && statement.exportClause && ts.isNamedExports(statement.exportClause))
      return statement.exportClause.elements.map(({ name }) => name.text)
    const exported = ts.canHaveModifiers(statement)
      ? ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
      : false
    if (!exported) return []
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => name.getText(source))
    return 'name' in statement ? [(statement.name as ts.Identifier).text] : []
  })
}

const doors = ['limiter', 'rules', 'gateway'].flatMap((name) => entries(`packages/${name}`))

describe.each(doors)('%s', (_entry, file) => {
  it('has no public name that the reference does not mention', () => {
    expect(existsSync(file)).toBe(true)
    const names = namesOf(file)
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter((name) => !new RegExp(`(?<![\\w@/])${name}(?!\\w)`).test(code))).toEqual([])
  })
})

it('every entry of the library is in its reference', () => {
  const library = documents().find(({ name }) => name === 'docs/reference/library.md')
  for (const [entry] of entries('packages/limiter')) expect(library?.prose).toContain(`\`${entry}\``)
})
