// Types, and the promises that only types can show, from one program: reading every type twice would be
// half of `npm run check`.
import { ESLint } from 'eslint'
import ts from 'typescript'
import config from '../eslint.config.mjs'
import { root } from './setup.mjs'

const { options, fileNames } = ts.getParsedCommandLineOfConfigFile(`${root}/tsconfig.json`, {}, ts.sys)
const program = ts.createProgram(fileNames, options)

const typeErrors = ts.getPreEmitDiagnostics(program)
const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => root, getNewLine: () => '\n' }
if (typeErrors.length > 0) console.log(ts.formatDiagnostics(typeErrors, host))

for (const { languageOptions } of config) {
  if (languageOptions) languageOptions.parserOptions = { programs: [program] }
}
const eslint = new ESLint({ cwd: root, overrideConfigFile: true, overrideConfig: config })
const results = await eslint.lintFiles(['.'])
console.log((await (await eslint.loadFormatter('stylish')).format(results)) || '')

const lintErrors = results.some(({ errorCount, warningCount }) => errorCount + warningCount > 0)
process.exitCode = typeErrors.length > 0 || lintErrors ? 1 : 0
