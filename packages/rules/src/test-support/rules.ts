import type { CheckItem, RuleRequest } from 'headgate'
import { type ParseOptions, parseRules } from '../load.ts'
import { type Problem, RuleFileError } from '../problem.ts'
import type { RuleFile } from '../rule-file.ts'

export interface RequestParts {
  readonly method?: string
  readonly path?: string
  readonly query?: string
  readonly host?: string
  readonly ip?: string
  readonly trusted?: boolean
  readonly route?: string
  /** A list is a field that arrived that often. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
}

export function request(parts: RequestParts = {}): RuleRequest {
  const { headers = {}, ...rest } = parts
  return {
    method: 'GET',
    path: '/',
    query: '',
    host: 'api.example.com',
    ip: '203.0.113.9',
    trusted: false,
    ...rest,
    header: (name) => {
      const value = Object.hasOwn(headers, name) ? headers[name] : undefined
      return typeof value === 'string' ? [value] : value
    },
  }
}

export function rules(text: string, env: ParseOptions['env'] = {}): RuleFile {
  return parseRules(text, { file: 'headgate.yaml', env })
}

/** The errors of a text, each as `LINE:COL CODE path: message`; empty where it loads. */
export function errors(text: string, env: ParseOptions['env'] = {}): string[] {
  return problems(text, env)
    .filter(({ severity }) => severity === 'error')
    .map(
      ({ line, column, code, path, message }) =>
        `${line}:${column} ${code.replace('HEADGATE_RULES_', '')} ${path}: ${message}`,
    )
}

/** The warnings of a text that loads, each as `path: message`. */
export function warnings(text: string): string[] {
  return rules(text).warnings.map(({ path, message }) => `${path}: ${message}`)
}

/** All that is wrong with a text, and what is probably not meant. */
export function problems(text: string, env: ParseOptions['env'] = {}): readonly Problem[] {
  try {
    return rules(text, env).warnings
  } catch (error) {
    if (error instanceof RuleFileError) return error.problems
    throw error
  }
}

/** What would be judged for a request: `rule:limit:value` for each limit. */
export function keys(file: RuleFile, parts: RequestParts): string[] {
  return itemsOf(file, parts).map(keyOf)
}

export function itemsOf(file: RuleFile, parts: RequestParts): readonly CheckItem[] {
  const match = file.match(request(parts))
  if (match.outcome !== 'check') throw new Error(`${match.outcome} by ${match.rule}`)
  return match.items
}

export function keyOf({ rule, name, key }: CheckItem): string {
  return `${rule}:${name}:${typeof key === 'object' && 'text' in key ? key.text : key}`
}
