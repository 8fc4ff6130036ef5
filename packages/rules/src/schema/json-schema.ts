import { z } from 'zod'
import { fileSchema } from './file.ts'

const VARIABLE = { type: 'string', pattern: '\\$\\{' }

/** The JSON Schema of rule files (draft 7, which editors read), from the schema that validates them. */
export function jsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(fileSchema, {
    io: 'input',
    target: 'draft-7',
    override: ({ jsonSchema }) => acceptVariables(jsonSchema as Record<string, unknown>),
  }) as Record<string, unknown>
  return { ...schema, title: 'Headgate rule file' }
}

/** Variables are put in after parsing, so an editor sees `"${X}"` where a number, a word or a form is due. */
function acceptVariables(schema: Record<string, unknown>): void {
  const { type } = schema
  const closed =
    type === 'integer' || type === 'boolean' || (type === 'string' && ('pattern' in schema || 'enum' in schema))
  if (!closed) return
  const { description, default: fallback, ...rest } = schema
  for (const key of Object.keys(schema)) delete schema[key]
  if (rest.maximum === Number.MAX_SAFE_INTEGER) delete rest.maximum
  Object.assign(schema, {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [rest, VARIABLE],
  })
}
