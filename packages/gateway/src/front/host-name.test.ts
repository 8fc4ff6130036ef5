import { expect, it } from 'vitest'
import { hostName } from './host-name.ts'

it.each([
  ['Shop.Example', 'shop.example'],
  ['shop.example:8080', 'shop.example'],
  ['shop.example:', 'shop.example'],
  ['shop.example.', 'shop.example'],
  ['shop_1.example', 'shop_1.example'],
  ['127.0.0.1:80', '127.0.0.1'],
  ['[2001:DB8::1]:80', '[2001:db8::1]'],
  ['', undefined],
  [':80', undefined],
  ['a b', undefined],
  ['a,b', undefined],
  ['a/b', undefined],
  ['u@a', undefined],
  ['a"b', undefined],
  ['a:b', undefined],
  ['::1', undefined],
  ['[::1', undefined],
])('of %j is %j', (authority, host) => {
  expect(hostName(authority)).toBe(host)
})
