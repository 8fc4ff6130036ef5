import { z } from 'zod'
import type { Report } from '../source/report.ts'
import { isList, isMap, type Path, type Tree } from '../source/tree.ts'
import { closest } from '../suggest.ts'
import { notes, type Objection } from './notes.ts'

/**
 * What is left of a value after its wrong parts were reported and dropped: any part may be
 * undefined. Lists keep their indexes, so that paths still point into the file.
 */
export type Salvaged<T> = T extends readonly (infer U)[]
  ? readonly (Salvaged<U> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Salvaged<T[K]> | undefined }
    : T

type Result = unknown

/**
 * Reads a value by a schema. Other than the schema's own parse it goes on after a problem, so that
 * one run reports all of them, those of later checks too.
 */
export function read<S extends z.ZodType>(
  schema: S,
  tree: Tree | undefined,
  path: Path,
  report: Report,
): Salvaged<z.output<S>> | undefined {
  return readAny(schema, tree, path, report) as Salvaged<z.output<S>> | undefined
}

function readAny(schema: z.core.$ZodType, tree: Tree | undefined, path: Path, report: Report): Result {
  if (schema instanceof z.ZodOptional)
    return tree === undefined ? undefined : readAny(schema.unwrap(), tree, path, report)
  if (tree === undefined) return missing(schema, path, report)
  if (schema instanceof z.ZodUnion) return readAny(branch(schema, tree), tree, path, report)
  if (schema instanceof z.ZodObject) return readObject(schema, tree, path, report)
  if (schema instanceof z.ZodRecord) return readRecord(schema, tree, path, report)
  if (schema instanceof z.ZodArray) return readArray(schema, tree, path, report)
  return readLeaf(schema, tree, path, report)
}

/** The option of a union that a value means to be: judged by its kind, then by what accepts it. */
function branch(schema: z.ZodUnion, tree: Tree): z.core.$ZodType {
  const options = schema.options
  const kind = (option: z.core.$ZodType) =>
    option instanceof z.ZodObject || option instanceof z.ZodRecord
      ? 'map'
      : option instanceof z.ZodArray
        ? 'list'
        : 'leaf'
  const wanted = isMap(tree) ? 'map' : isList(tree) ? 'list' : 'leaf'
  const fitting = options.filter((option) => kind(option) === wanted)
  return (
    fitting.find((option) => wanted !== 'leaf' || z.safeParse(option, tree).success) ??
    fitting[0] ??
    (options[0] as z.core.$ZodType)
  )
}

function missing(schema: z.core.$ZodType, path: Path, report: Report): undefined {
  // Where a variable is not set the value is missing, too, and that was said.
  if (!report.failedWithin(path)) report.add(path, 'HEADGATE_RULES_VALUE', `is missing${writeHint(schema)}`)
  return undefined
}

function readObject(schema: z.ZodObject, tree: Tree, path: Path, report: Report): Result {
  if (!isMap(tree)) return wrongKind('a mapping of keys to values', schema, path, report)
  const { later = [] } = notes.get(schema) ?? {}
  for (const key of tree.keys()) {
    if (Object.hasOwn(schema.shape, key)) continue
    if (later.includes(key)) {
      report.add([...path, key], 'HEADGATE_RULES_UNSUPPORTED', 'is not supported yet; leave it out', { at: 'key' })
    } else unknownKey(key, Object.keys(schema.shape), later, path, report)
  }
  const result: Record<string, Result> = {}
  for (const [key, inner] of Object.entries(schema.shape)) {
    const value = readAny(inner, tree.get(key), [...path, key], report)
    if (value !== undefined) result[key] = value
  }
  return result
}

function unknownKey(key: string, known: readonly string[], later: readonly string[], path: Path, report: Report): void {
  if (key === '<<') {
    const message = 'is a merge key, and those do not work; write the keys out, or make the whole value an alias'
    report.add([...path, key], 'HEADGATE_RULES_UNKNOWN_KEY', message, { at: 'key' })
    return
  }
  const near = closest(key, [...known, ...later])
  if (near !== undefined) report.misspelt([...path, near])
  const unsupported = near !== undefined && later.includes(near) ? ', which is not supported yet' : ''
  const way = near === undefined ? `; known here: ${known.join(', ')}` : `; did you mean ${near}${unsupported}`
  report.add([...path, key], 'HEADGATE_RULES_UNKNOWN_KEY', `is no key that is known here${way}`, { at: 'key' })
}

function readRecord(schema: z.ZodRecord, tree: Tree, path: Path, report: Report): Result {
  if (!isMap(tree)) return wrongKind('a mapping of names to values', schema, path, report)
  const result: Record<string, Result> = Object.create(null)
  for (const [key, inner] of tree) {
    const keys = z.safeParse(schema.keyType, key)
    if (!keys.success) {
      const message = keys.error.issues[0]?.message.replace('{}', JSON.stringify(key)) ?? 'is not a right name'
      report.add([...path, key], 'HEADGATE_RULES_VALUE', message, { at: 'key' })
    }
    const value = readAny(schema.valueType, inner, [...path, key], report)
    if (value !== undefined) result[key] = value
  }
  return result
}

function readArray(schema: z.ZodArray, tree: Tree, path: Path, report: Report): Result {
  if (!isList(tree)) return wrongKind('a list', schema, path, report)
  const least = z.safeParse(schema, []).success ? 0 : 1
  if (tree.length < least)
    report.add(path, 'HEADGATE_RULES_VALUE', 'is an empty list; write at least one entry, or leave the key out')
  return tree.map((item, i) => readAny(schema.element, item, [...path, i], report))
}

function wrongKind(kind: string, schema: z.core.$ZodType, path: Path, report: Report): undefined {
  const what = report.source.written(path) === 'nothing' ? 'is empty' : `{} is not ${kind}`
  report.add(path, 'HEADGATE_RULES_VALUE', `${what}${writeHint(schema)}`)
  return undefined
}

function readLeaf(schema: z.core.$ZodType, tree: Tree, path: Path, report: Report): Result {
  const value = report.source.expanded(path) ? fromEnvironment(schema, tree) : tree
  const parsed = z.safeParse(schema, value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0] as z.core.$ZodIssue
  if (issue.code === 'custom') {
    const { code, message, options, fix } = issue.params as unknown as Objection
    report.add(path, code, message, { options, fix })
  } else if (issue.code === 'too_small' || issue.code === 'too_big') {
    report.add(path, 'HEADGATE_RULES_RANGE', `{} is out of range${writeHint(schema)}`)
  } else if (isUnquotedText(schema, value, report.source.written(path))) {
    report.add(path, 'HEADGATE_RULES_VALUE', '{} reads as a number or a flag here; quote the value')
  } else {
    const what = value === null ? 'is empty' : '{} is not right here'
    const options = issue.code === 'invalid_value' ? { options: issue.values.map(String) } : {}
    report.add(path, 'HEADGATE_RULES_VALUE', `${what}${writeHint(schema)}`, options)
  }
  return undefined
}

/** Whether the value would be right, had YAML not taken it for something else than text. */
function isUnquotedText(schema: z.core.$ZodType, value: Tree, written: string | undefined): boolean {
  return (typeof value === 'number' || typeof value === 'boolean') && z.safeParse(schema, written).success
}

/** Variables are texts; where a number or a flag is due, a text that spells one is one. */
function fromEnvironment(schema: z.core.$ZodType, tree: Tree): Tree {
  if (schema instanceof z.ZodNumber && typeof tree === 'string' && /^(0|-?[1-9]\d{0,15})$/.test(tree))
    return Number(tree)
  if ((schema instanceof z.ZodBoolean || schema instanceof z.ZodLiteral) && (tree === 'true' || tree === 'false')) {
    return tree === 'true'
  }
  return tree
}

function writeHint(schema: z.core.$ZodType): string {
  const write = noteOf(schema)
  return write === undefined ? '' : `; write ${write}`
}

function noteOf(schema: z.core.$ZodType): string | undefined {
  const write = notes.get(schema as z.ZodType)?.write
  if (write !== undefined) return write
  if (schema instanceof z.ZodUnion) return noteOf(schema.options[0] as z.core.$ZodType)
  return schema instanceof z.ZodArray ? 'a list' : undefined
}
