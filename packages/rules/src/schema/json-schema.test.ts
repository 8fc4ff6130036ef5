import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { jsonSchema } from './json-schema.ts'

type Schema = {
  [key: string]: unknown
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  description?: string
}

describe('the JSON Schema', () => {
  const schema = jsonSchema() as Schema

  it('is published as it is made (npm run generate)', () => {
    const published = readFileSync(new URL('../../headgate.schema.json', import.meta.url), 'utf8')
    expect(published).toBe(`${JSON.stringify(schema, null, 2)}\n`)
  })

  it('describes every key for editors', () => {
    const bare: string[] = []
    const look = (part: Schema, path: string) => {
      for (const [key, inner] of Object.entries(part.properties ?? {})) {
        if (inner.description === undefined) bare.push(`${path}.${key}`)
        look(inner, `${path}.${key}`)
      }
      if (part.items) look(part.items, `${path}[]`)
      if (typeof part.additionalProperties === 'object') look(part.additionalProperties as Schema, `${path}.*`)
      for (const option of part.anyOf ?? []) look(option, path)
    }
    look(schema, '')
    expect(bare).toEqual([])
  })

  it('knows no other keys, and which are needed', () => {
    expect(schema).toMatchObject({
      $schema: 'http://json-schema.org/draft-07/schema#',
      additionalProperties: false,
      required: ['rules'],
    })
    expect(schema.properties?.rules).toMatchObject({ items: { additionalProperties: false, required: ['name'] } })
  })

  it('accepts a variable where a number, a word or a form is due', () => {
    const variable = { type: 'string', pattern: '\\$\\{' }
    expect(schema.properties?.instances?.anyOf).toContainEqual(variable)
    expect(schema.properties?.timeout?.anyOf).toContainEqual(variable)
    expect(schema.properties?.defaults?.properties?.headers?.anyOf).toContainEqual(variable)
  })
})
