import { ERROR_CODES } from 'headgate'
import { expect, it } from 'vitest'
import { document, rows } from './markdown.ts'

const errors = document('docs/reference/errors.md')

it('the table of errors lists exactly the codes that the library knows, each with a cause and a way out', () => {
  const listed = rows(errors).filter(([code]) => code?.startsWith('`HEADGATE_'))
  expect(listed.map(([code]) => code?.replaceAll('`', '')).sort()).toEqual(Object.keys(ERROR_CODES).sort())
  for (const [, cause = '', way = ''] of listed) {
    expect(cause).toMatch(/\w/)
    expect(way).toMatch(/\w/)
  }
})
