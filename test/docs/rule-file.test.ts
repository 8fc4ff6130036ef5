import { jsonSchema, parseRules } from '@headgate/rules'
import { describe, expect, it } from 'vitest'
import { document, documents, rows } from './markdown.ts'

const reference = document('docs/reference/rule-file.md')

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly default?: unknown
}

/** Every mapping of the rule file by the heading that documents it. */
function sections(schema: Schema, path = ''): [heading: string, keys: Readonly<Record<string, Schema>>][] {
  const found: [string, Readonly<Record<string, Schema>>][] = []
  if (schema.properties) {
    found.push([path === '' ? 'Top level' : `\`${path}\``, schema.properties])
    for (const [key, inner] of Object.entries(schema.properties))
      found.push(...sections(inner, path === '' ? key : `${path}.${key}`))
  }
  if (typeof schema.additionalProperties === 'object')
    found.push(...sections(schema.additionalProperties, `${path}.NAME`))
  if (schema.items) found.push(...sections(schema.items, `${path}[]`))
  for (const each of schema.anyOf ?? []) found.push(...sections(each, path))
  return found
}

const known = sections(jsonSchema() as Schema)

/** The keys that a section's table names. */
function keysUnder(heading: string): string[] {
  return rows(reference, heading)
    .slice(1)
    .map(([key = '']) => key.replaceAll('`', ''))
}

describe('the reference of the rule file', () => {
  // What has the keys of a section that stands elsewhere.
  const own = known.filter(([heading]) => !/^`rules\[\]\.(match\.not|candidate\.limits\[\].*)`$/.test(heading))

  it.each(own)('has exactly the keys of %s', (heading, keys) => {
    expect(keysUnder(heading)).toEqual(Object.keys(keys))
  })

  it.each(own)('names the defaults of %s', (heading, keys) => {
    const defaults = new Map(rows(reference, heading).map(([key = '', , fallback = '']) => [key, fallback]))
    for (const [key, schema] of Object.entries(keys)) {
      if (schema.default !== undefined) expect(defaults.get(`\`${key}\``), key).toBe(`\`${schema.default}\``)
    }
  })

  it('needs no section for the keys of not, which are those of match', () => {
    const [, keys = {}] = known.find(([heading]) => heading === '`rules[].match.not`') ?? []
    expect(keysUnder('`rules[].match`')).toEqual(expect.arrayContaining(Object.keys(keys)))
  })

  it('needs no section for the limits of a candidate, which are those of a rule', () => {
    for (const [heading, keys] of known.filter(([text]) => text.startsWith('`rules[].candidate.limits'))) {
      expect(keysUnder(heading.replace('candidate.', ''))).toEqual(Object.keys(keys))
    }
  })

  it('has no section for what is no mapping of the file', () => {
    const headings = reference.headings.map(({ text }) => text).filter((text) => text.startsWith('`'))
    expect(headings).toEqual(known.map(([heading]) => heading).filter((heading) => headings.includes(heading)))
  })
})

/** Whole files, and pieces of them that begin with a key of the top level. */
const yaml = documents().flatMap(({ name, blocks }) =>
  blocks.filter(({ language }) => language === 'yaml').map(({ code, line }) => [`${name}:${line}`, code] as const),
)

describe('rules in the documents', () => {
  const topLevel = Object.keys((jsonSchema() as Schema).properties ?? {})

  it('are there', () => expect(yaml.length).toBeGreaterThan(5))

  it.each(yaml)('load as they stand: %s', (place, code) => {
    const keys = [...code.matchAll(/^([A-Za-z]+):/gm)].map(([, key = '']) => key)
    expect(topLevel).toEqual(expect.arrayContaining(keys))
    const names = [...code.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, `${name.length}`])
    const whole = keys.includes('rules') ? code : `${code}\nrules: []\n`
    expect(() => parseRules(whole, { file: place, env: Object.fromEntries(names) })).not.toThrow()
  })
})
