import { parseRules } from '@headgate/rules'
import { expect, it } from 'vitest'
import { Reloading } from './reloading.ts'

const file = (text: string) => parseRules(text, { file: 'h.yaml', env: {} })
const warned = '{ name: a, deny: true }'

it('a reload logs only warnings that the file before it had not', () => {
  const lines: string[] = []
  const log = {
    info: () => undefined,
    warn: (_: object, line: string) => void lines.push(line),
    error: () => undefined,
  }
  const gateway = { apply: () => undefined, reloadFailed: () => undefined }
  const reloading = new Reloading(file(`rules: [${warned}]`), gateway, log)
  reloading.load(file(`# a line more\nrules: [${warned}]`))
  expect(lines).toEqual([])
  reloading.load(file(`rules: [${warned}, { name: b, deny: true, match: { path: /b } }]`))
  expect(lines.filter((line) => line.includes('no description'))).toEqual([expect.stringContaining('rules[1].name')])
  lines.length = 0
  reloading.load(file('rules: []'))
  reloading.load(file(`rules: [${warned}]`))
  expect(lines).toEqual([expect.stringContaining('rules[0].name')])
})
