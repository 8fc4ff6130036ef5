import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { Metrics } from './index.ts'
import { Numbers } from './numbers.ts'

const read = (name: string) => readFileSync(new URL(`../../../../docs/reference/${name}`, import.meta.url), 'utf8')

it('the reference lists exactly the metrics that there are, with their types', async () => {
  const text = await new Metrics({ version: '0.0.0' }).render()
  const registered = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type])
  const listed = [...read('metrics.md').matchAll(/^\| `(headgate_\w+)` \| (\w+) \|/gm)].map(([, ...row]) => row)
  expect(registered.length).toBeGreaterThan(5)
  expect(listed.sort()).toEqual(registered.sort())
})

it('the reference says of every kind of trouble with the store what it is', () => {
  const section = read('errors.md').split('## What a store')[1] ?? ''
  const kinds = Object.keys(new Numbers().storeErrors)
  expect(kinds.filter((kind) => !new RegExp(`^\\| \`${kind}\` \\||\`${kind}\`: `, 'm').test(section))).toEqual([])
})
