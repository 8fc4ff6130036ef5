import { dirname, join } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'
import { documents, ROOT } from './markdown.ts'

/** Every TypeScript block as a file beside this one, which is not on the disk. */
const files = new Map(
  documents().flatMap(({ name, blocks }) =>
    blocks
      .filter(({ language }) => language === 'ts')
      .map(({ code, line }) => [
        join(import.meta.dirname, `${name.replaceAll(/[/.]/g, '-')}-${line}.ts`),
        { place: `${name}:${line}`, line, code: `${code}\nexport {}\n` },
      ]),
  ),
)

function optionsOf(file: string): ts.CompilerOptions {
  const { config } = ts.readConfigFile(file, ts.sys.readFile)
  return ts.parseJsonConfigFileContent(config, ts.sys, dirname(file)).options
}

it('TypeScript in the documents passes the strict compiler', { timeout: 60_000 }, () => {
  const options = { ...optionsOf(join(ROOT, 'tsconfig.json')), noUnusedLocals: false, declaration: false }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (file) => files.has(file) || fileExists(file)
  host.readFile = (file) => files.get(file)?.code ?? readFile(file)
  host.getSourceFile = (file, version, ...rest) => {
    const code = files.get(file)?.code
    return code === undefined ? getSourceFile(file, version, ...rest) : ts.createSourceFile(file, code, version)
  }
  const program = ts.createProgram([...files.keys()], options, host)
  const problems = [...files].flatMap(([file, { place, line }]) => {
    const source = program.getSourceFile(file)
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((each) => {
      const at = source?.getLineAndCharacterOfPosition(each.start ?? 0).line ?? 0
      return `${place.replace(/:\d+$/, '')}:${line + at}: ${ts.flattenDiagnosticMessageText(each.messageText, '\n')}`
    })
  })
  expect(files.size).toBeGreaterThan(10)
  expect(problems).toEqual([])
})
