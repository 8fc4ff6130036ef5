import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { refuseUnknown } from 'headgate'
import type { FileValues } from './compile/context.ts'
import { compileFile } from './compile/file.ts'
import { RuleFileError } from './problem.ts'
import type { RuleFile } from './rule-file.ts'
import { fileSchema } from './schema/file.ts'
import { read } from './schema/read.ts'
import { parseSource } from './source/document.ts'
import type { Environment } from './source/expand.ts'
import { type Located, Report } from './source/report.ts'

export interface LoadOptions {
  /** What `${X}` is taken from; default `process.env`. */
  readonly env?: Environment
}

export interface ParseOptions extends LoadOptions {
  /** The file's name for messages. */
  readonly file: string
}

/** What a loaded file was made of, for a reload. */
interface Origin {
  readonly values: FileValues
  readonly rulesText: string
  readonly located: Located
  readonly digest: string
}

const origins = new WeakMap<RuleFile, Origin>()

/**
 * Parses, checks and compiles the text of a rule file.
 * @throws RuleFileError with every problem found, in the order of the file
 */
export function parseRules(text: string, options: ParseOptions): RuleFile {
  refuseUnknown(options, ['file', 'env'], 'parseRules')
  const { file, env = process.env } = options
  const { tree, rulesText, report } = parseSource(text, file, env)
  if (tree === undefined || tree === null) {
    if (!report.failed)
      report.addAt({ line: 1, column: 1 }, 'HEADGATE_RULES_VALUE', '', 'the file is empty; write at least rules: []')
    throw new RuleFileError(report.sorted())
  }
  const values = read(fileSchema, tree, [], report)
  if (values === undefined) throw new RuleFileError(report.sorted())
  const compiled = compileFile(values, rulesText, report)
  origins.set(compiled, { values, rulesText: rulesText(), located: report.source, digest: digest(text) })
  return compiled
}

/**
 * Reads a rule file (UTF-8) and compiles it.
 * @throws RuleFileError with every problem found; HEADGATE_RULES_FILE where the file cannot be read
 */
export async function loadRules(file: string, options: LoadOptions = {}): Promise<RuleFile> {
  refuseUnknown(options, ['env'], 'loadRules')
  return parseRules(await readText(file), { ...options, file })
}

/** The text of a file. @throws RuleFileError that says what to do */
export async function readText(file: string): Promise<string> {
  const bytes = await readBytes(file)
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
  if (!bytes.equals(Buffer.from(bytes.toString('utf8'), 'utf8')))
    throw fileError(file, 'is not UTF-8; save it as UTF-8')
  return text
}

/** Opening a pipe that nobody writes to would wait for ever, and so would reading one. */
const WITHOUT_WAITING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

async function readBytes(file: string): Promise<Buffer> {
  let handle: FileHandle | undefined
  try {
    handle = await open(file, WITHOUT_WAITING)
    const stats = await handle.stat()
    if (stats.isFile()) return await handle.readFile()
    throw fileError(file, stats.isDirectory() ? DIRECTORY : 'is no regular file; name one')
  } catch (cause) {
    throw cause instanceof RuleFileError ? cause : fileError(file, reasonOf(cause), cause)
  } finally {
    await handle?.close()
  }
}

const DIRECTORY = 'is a directory; name a file'

function reasonOf(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'ENOENT') return 'there is no such file; write one, or name another with -c FILE'
  if (code === 'EISDIR') return DIRECTORY
  if (code === 'ENXIO') return 'is a socket; name a file'
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user; change its permissions'
  return `cannot be read (${code || 'unknown error'})`
}

function fileError(file: string, message: string, cause?: unknown): RuleFileError {
  const problem = {
    file,
    line: 1,
    column: 1,
    code: 'HEADGATE_RULES_FILE',
    path: '',
    message,
    severity: 'error',
  } as const
  return new RuleFileError([problem], { cause })
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The digest of the text that a rule file was made of. */
export function digestOf(file: RuleFile): string | undefined {
  return origins.get(file)?.digest
}

/** The secret under which values are hashed, as a thing to compare. */
export function keySecretOf(file: RuleFile): string {
  return origins.get(file)?.values.keySecret ?? ''
}

/**
 * A reloaded file with the settings of the one that runs: rules, dimensions, defaults and routes are
 * of `after`, all others stay as they are until a restart.
 * @throws RuleFileError where the new rules do not fit the settings that stay
 */
export function keepSettings(before: RuleFile, after: RuleFile): RuleFile {
  const [old, fresh] = [origins.get(before), origins.get(after)]
  if (!old || !fresh) return after
  const { rules, dimensions, defaults } = fresh.values
  const routes = fresh.values.gateway?.routes
  const gateway = old.values.gateway && { ...old.values.gateway, routes }
  const values: FileValues = { ...old.values, gateway, rules, dimensions, defaults }
  const kept = compileFile(values, () => fresh.rulesText, new Report(after.file, fresh.located))
  origins.set(kept, { ...fresh, values })
  return kept
}
