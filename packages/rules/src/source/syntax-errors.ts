import type { YAMLError } from 'yaml'

const QUOTE = 'quote the value'

/** Our words for what the parser reports: its own may hold pieces of the file, which may be secrets. */
const WORDS: Readonly<Record<string, string>> = {
  BAD_ALIAS: `a value that starts with * reads as an alias; ${QUOTE}`,
  BAD_COLLECTION_TYPE: 'a tag does not fit what it stands before; leave the tag out',
  BAD_DIRECTIVE: 'a line that starts with % reads as a directive; leave it out',
  BAD_DQ_ESCAPE: `an unknown escape in double quotes; ${QUOTE} in single quotes`,
  BAD_INDENT: `a bracket, brace or quote is not closed, or the lines after it are not indented; close it, or ${QUOTE}`,
  BAD_SCALAR_START: `a value cannot start with @, \`, % or another reserved character; ${QUOTE}`,
  BLOCK_AS_IMPLICIT_KEY: `a second "key: " on one line; ${QUOTE}`,
  BLOCK_IN_FLOW: `a block inside brackets or braces; ${QUOTE}`,
  KEY_OVER_1024_CHARS: 'a key is over 1024 characters long',
  MISSING_CHAR: `a character is missing, such as a closing quote or a comma; close it, or ${QUOTE}`,
  MULTILINE_IMPLICIT_KEY: `a line that is neither a "key: value" nor part of one; give it a key, or ${QUOTE}`,
  MULTIPLE_DOCS: 'a second document begins here; keep one document in the file',
  TAB_AS_INDENT: 'a tab is used as indentation; use spaces',
  UNEXPECTED_TOKEN: `something stands after the end of a value; ${QUOTE}`,
}

/** Errors that usually only follow from an earlier one. */
const FOLLOW_ON = new Set(['UNEXPECTED_TOKEN', 'MULTILINE_IMPLICIT_KEY'])

export interface SyntaxProblem {
  readonly offset: number
  readonly message: string
}

/** The parser's errors: at most one a line, without those that an earlier error brought about. */
export function syntaxProblems(errors: readonly YAMLError[], lineOf: (offset: number) => number): SyntaxProblem[] {
  const problems: SyntaxProblem[] = []
  const lines = new Set<number>()
  for (const error of errors) {
    const offset = error.pos[0]
    const line = lineOf(offset)
    if (lines.has(line) || (problems.length > 0 && FOLLOW_ON.has(error.code))) continue
    lines.add(line)
    problems.push({ offset, message: WORDS[error.code] ?? `this is not YAML 1.2; ${QUOTE}` })
  }
  return problems
}
