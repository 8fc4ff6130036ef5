import { expect, it } from 'vitest'
import { FieldTable, namedByConnection, withoutFields } from './field-table.ts'

it('knows a field by its name in any case, and asks once for each spelling', () => {
  const asked: string[] = []
  const table = new FieldTable((name) => {
    asked.push(name)
    return name === 'host' ? 1 : 0
  })
  for (const name of ['Host', 'host', 'Host', 'HOST', 'Hosts']) table.kindOf(name)
  expect([table.kindOf('Host'), table.kindOf('HOST'), table.kindOf('Hosts')]).toEqual([1, 1, 0])
  expect(asked).toEqual(['host', 'host', 'host', 'hosts'])
})

it('does not grow with the names that strangers send', () => {
  let asked = 0
  const table = new FieldTable(() => {
    asked += 1
    return 0
  })
  for (let i = 0; i < 2000; i++) table.kindOf(`x-${i}`)
  for (let i = 0; i < 2000; i++) table.kindOf(`x-${i}`)
  expect(asked).toBeGreaterThan(2000)
  expect(asked).toBeLessThan(4000)
})

it.each([
  ['keep-alive', undefined],
  ['close', undefined],
  ['Keep-Alive, Upgrade', undefined],
  [' , ,', undefined],
  ['close, X-One , x-TWO', ['x-one', 'x-two']],
])('reads what Connection names: %s', (value, names) => {
  expect(namedByConnection(value)).toEqual(names && new Set(names))
})

it('takes named fields out, each time they stand there, and leaves the others in order', () => {
  const fields = ['A', '1', 'X-One', '2', 'B', '3', 'x-one', '4']
  withoutFields(fields, new Set(['x-one']))
  expect(fields).toEqual(['A', '1', 'B', '3'])
})
