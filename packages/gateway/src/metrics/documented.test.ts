import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { Metrics } from './index.ts'

const reference = readFileSync(new URL('../../../../docs/reference/metrics.md', import.meta.url), 'utf8')

it('the reference lists exactly the metrics that there are, with their types', async () => {
  const text = await new Metrics({ version: '0.0.0' }).render()
  const registered = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type])
  const listed = [...reference.matchAll(/^\| `(headgate_\w+)` \| (\w+) \|/gm)].map(([, name, type]) => [name, type])
  expect(registered.length).toBeGreaterThan(5)
  expect(listed.sort()).toEqual(registered.sort())
})
