import type { ErrorCode } from 'headgate'
import { z } from 'zod'

/** What a schema itself cannot say: how to put a value right, and what is known but not there yet. */
export interface Note {
  /** Follows "write": what a right value looks like. */
  readonly write?: string
  /** Keys of an object that a later version will know. */
  readonly later?: readonly string[]
}

export const notes = z.registry<Note>()

export interface Objection {
  readonly code: ErrorCode
  /** `{}` stands for the value as it is written in the file. */
  readonly message: string
  /** What the value could have been meant to be. */
  readonly options?: readonly string[]
  /** The value put right; it holds parts of the value, so it is only shown where those may be. */
  readonly fix?: string
}

/** What is wrong with a text; a string alone is a value of the wrong form. */
export type Check = (text: string) => string | Objection | undefined

export interface LeafOptions {
  /** For editors. */
  readonly description: string
  /** Follows "write". */
  readonly write: string
  /** A regular expression for editors; the check decides. */
  readonly pattern?: string
  readonly examples?: readonly string[]
  readonly default?: string
}

/** A text with a check of its own. `{}` in the check's message stands for the value as written. */
export function text(options: LeafOptions, check?: Check): z.ZodString {
  const { write, ...meta } = options
  const schema = z
    .string()
    .check((context) => {
      const objection = check?.(context.value)
      if (objection === undefined) return
      const params = typeof objection === 'string' ? { code: 'HEADGATE_RULES_VALUE', message: objection } : objection
      context.issues.push({ code: 'custom', input: context.value, params, message: params.message })
    })
    .meta(meta)
  notes.add(schema, { write })
  return schema
}

/** A whole number in a range. */
export function integer(description: string, min: number, max: number, fallback?: number): z.ZodInt {
  const schema = z
    .int()
    .min(min)
    .max(max)
    .meta({ description, ...(fallback === undefined ? {} : { default: fallback }) })
  notes.add(schema, { write: `a whole number from ${min} to ${max}` })
  return schema
}

export function flag(description: string, fallback: boolean): z.ZodBoolean {
  const schema = z.boolean().meta({ description, default: fallback })
  notes.add(schema, { write: 'true or false' })
  return schema
}

/** One of some words. */
export function word<const W extends readonly [string, ...string[]]>(
  words: W,
  description: string,
  options: { default?: W[number] } = {},
): z.ZodEnum<{ [K in W[number]]: K }> {
  const meta = { description, ...(options.default === undefined ? {} : { default: options.default }) }
  const schema = z.enum(words).meta(meta)
  const write = words.length < 2 ? words[0] : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
  notes.add(schema, { write })
  return schema
}

/** A mapping with known keys only; `later` are keys that are known and refused as not supported yet. */
export function section<S extends z.core.$ZodLooseShape>(
  shape: S,
  description: string,
  later: readonly string[] = [],
): z.ZodObject<S, z.core.$strict> {
  const schema = z.strictObject(shape).meta({ description })
  notes.add(schema, { later })
  return schema
}

/** One value, or a list of at least one. */
export function oneOrMany<T extends z.ZodType>(one: T): z.ZodUnion<[T, z.ZodArray<T>]> {
  return z.union([one, z.array(one).min(1)])
}
