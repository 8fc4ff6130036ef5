import type { CompiledLimit, RuleFile } from '@headgate/rules'
import { type CheckItem, NAME } from 'headgate'
import { usageError } from './exit.ts'

/**
 * The counters that an operator names by `RULE[/LIMIT]` and keys; none where the key is unlimited.
 * @throws HeadgateError with HEADGATE_USAGE that says which rules, limits or dimensions there are
 */
export function namedCounters(file: RuleFile, target: string, keys: readonly string[]): readonly CheckItem[] {
  const slash = target.indexOf('/')
  const rule = slash < 0 ? target : target.slice(0, slash)
  const limit = slash < 0 ? undefined : target.slice(slash + 1)
  return file.itemsFor(rule, limit, keyValues(file, rule, limit, keys))
}

/** Where {@link namedCounters} finds none. */
export function unlimitedLine(target: string): string {
  return `${target}: unlimited for this key, so nothing is counted`
}

/** Counters of a process in its memory are out of reach for another process. */
export function refuseMemory(file: RuleFile, what: string): void {
  if (file.store.kind !== 'memory') return
  throw usageError(
    `${what} needs a shared store: with store: memory the counters are inside the gateway's process; ` +
      `write store: redis://… in ${file.file}, or look at what would be decided with headgate explain`,
  )
}

function keyValues(
  file: RuleFile,
  ruleName: string,
  limitName: string | undefined,
  keys: readonly string[],
): Record<string, string> {
  const values: Record<string, string> = {}
  const rule = file.rules.find(({ name }) => name === ruleName)
  const limits = rule?.limits.filter(({ name }) => limitName === undefined || name === limitName) ?? []
  // That there is no such rule or limit is said where it is looked up.
  if (limits.length === 0) return values
  for (const key of keys) {
    const [dimension, value] = keyValue(key, limits, limitName === undefined ? ruleName : `${ruleName}/${limitName}`)
    if (Object.hasOwn(values, dimension)) throw usageError(`${dimension} is given twice; give it once`)
    values[dimension] = value
  }
  return values
}

/** A text before `=` that cannot be a dimension's name belongs to a bare value. */
function keyValue(key: string, limits: readonly CompiledLimit[], target: string): [string, string] {
  const equals = key.indexOf('=')
  if (equals > 0 && NAME.test(key.slice(0, equals))) return [key.slice(0, equals), key.slice(equals + 1)]
  const dimensions = [...new Set(limits.flatMap(({ by }) => by))].filter((name) => name !== 'global')
  const [only] = dimensions
  if (only === undefined) throw usageError(`${target} counts all callers together; leave the key out`)
  if (dimensions.length === 1) return [only, key]
  throw usageError(`${key} could be ${dimensions.join(' or ')}; write --key ${only}=${key}`)
}
