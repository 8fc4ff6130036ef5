import { expect, test } from 'vitest'
import { table } from './table.ts'

test('columns are as wide as their widest cell, and lines end without spaces', () => {
  expect(
    table([
      ['a', 'bbb', ''],
      ['aaa', 'b', 'c'],
    ]),
  ).toEqual(['a    bbb', 'aaa  b    c'])
})

test('rows may be of different lengths', () => {
  expect(table([['aa'], ['a', 'b']])).toEqual(['aa', 'a   b'])
})
