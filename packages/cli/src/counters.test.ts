import { parseRules } from '@headgate/rules'
import { describe, expect, it } from 'vitest'
import { namedCounters } from './counters.ts'
import { ordersFile } from './test-support/rules.ts'

const file = parseRules(ordersFile('memory'), { file: 'headgate.yaml' })

/** `RULE[/LIMIT] KEY…` → the counters, or what is wrong. */
function counters(line: string): string[] | string {
  const [target = '', ...keys] = line.split(' ')
  try {
    return namedCounters(file, target, keys).map(({ rule, name, key }) => `${rule}:${name}:${keyText(key)}`)
  } catch (error) {
    return (error as Error).message
  }
}

function keyText(key: unknown): string {
  return (key as { text: string }).text
}

describe('an operator names counters by rule, limit and keys', () => {
  it.each([
    ['orders user=42', ['orders:user:42']],
    ['orders user=42 route=/api/orders', ['orders:user:42', 'orders:user+route:42:%2Fapi%2Forders']],
    ['orders/user+route user=42 route=/api/orders', ['orders:user+route:42:%2Fapi%2Forders']],
    ['orders', ['orders:global:']],
    ['orders/global', ['orders:global:']],
    ['orders/user 42', ['orders:user:42']],
    ['reports 42', ['reports:user:42']],
    ['login 2001:db8::1', ['login:ip:2001%3Adb8%3A%3A']],
    ['orders/user /x=y', ['orders:user:%2Fx%3Dy']],
    ['orders/user user=a=b', ['orders:user:a%3Db']],
    ['orders/user user=', ['orders:user:']],
    ['orders/user acme', []],
    ['orders/user ~ip:203.0.113.7', ['orders:user:~ip:203.0.113.7']],
  ])('%s: %j', (line, found) => {
    expect(counters(line)).toEqual(found)
  })

  it.each([
    ['ordes', 'there is no rule "ordes"; did you mean orders'],
    ['nothing 42', 'there is no rule "nothing"; the file has orders, login, reports, strict, staff, banned, later'],
    ['orders/usr', 'rule orders has no limit "usr"; did you mean user'],
    ['orders/usr 42', 'rule orders has no limit "usr"; did you mean user'],
    ['orders usr=42', 'rule orders counts by global, user, route, tenant, not by "usr"'],
    ['orders/user a=b', 'rule orders counts by user, not by "a"'],
    ['orders 42', '42 could be user or route or tenant; write --key user=42'],
    ['orders/global 42', 'orders/global counts all callers together; leave the key out'],
    ['orders user=1 user=2', 'user is given twice; give it once'],
    ['orders/user+route user=1', 'limit orders/user+route needs a value for route'],
    ['login', 'no limit of rule login fits the values given: ip needs ip'],
    ['staff', 'rule staff has no limits'],
    ['staff 42', 'rule staff has no limits'],
  ])('%s: %s', (line, problem) => {
    expect(counters(line)).toBe(problem)
  })
})
