import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../../test/fresh-build.ts'
import { freePort, type RedisServer, startRedis } from '../../../../test/redis.ts'
import { folderWith, headgate } from '../test-support/headgate.ts'
import { ordersFile } from '../test-support/rules.ts'
import { spend } from '../test-support/spend.ts'

let cwd = ''
let redis: RedisServer
beforeAll(async () => {
  assertFreshBuild()
  cwd = folderWith({ 'headgate.yaml': ordersFile('memory') }, afterAll)
  redis = await startRedis()
  writeFileSync(join(cwd, 'redis.yaml'), ordersFile(redis.url))
  writeFileSync(join(cwd, 'away.yaml'), ordersFile(`redis://:s3cret@127.0.0.1:${await freePort()}`))
})
afterAll(() => redis?.stop())

const explain = (...args: string[]) => headgate(['explain', ...args], { cwd })

/** The lines with their columns run together. */
const words = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().replace(/ {2,}/g, ' | '))

describe('headgate explain', () => {
  it('shows the rules that match with their limits, why others do not, and what would be decided', async () => {
    const { code, stdout, stderr } = await explain(
      'GET',
      '/api/orders?page=2',
      '-H',
      'x-user-id: 42',
      '-H',
      'host: shop.example',
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(words(stdout)).toEqual([
      'GET /api/orders?page=2 | from 127.0.0.1 | host shop.example | route /api/*',
      'store: memory is inside the gateway, so an unused budget is judged',
      '',
      'orders | matches GET /api/orders, costs 1',
      'global | 800/s burst 120 | 120 of 120 left | rate_limit:orders:global:',
      'user | 5/m | 5 of 5 left | rate_limit:orders:user:42',
      'user+route | 60/m | 60 of 60 left | rate_limit:orders:user+route:42:%2Fapi%2Forders',
      'tenant | tenant is missing (header x-tenant), so the limit is dropped',
      '',
      'Not matched:',
      'staff | there is no field x-staff',
      'banned | the address is in none of 198.51.100.0/24',
      'later | its mode is off',
      'login | the path is none of /api/login',
      'reports | the path is none of /api/reports',
      'strict | the path is none of /api/strict',
      '',
      'Would pass: all limits admit it.',
    ])
  })

  it('looks at the state in Redis and changes nothing; a refusal names the limit and exits 1', async () => {
    await spend(ordersFile(redis.url), 'login', { ip: '203.0.113.7' }, 2)
    const counter = 'rate_limit:login:ip:203.0.113.7'
    const before = await redis.command('GET', counter)
    const used = await explain('POST', 'http://127.0.0.1/api/login', '--ip', '203.0.113.7', '-c', 'redis.yaml')
    expect(used.code).toBe(1)
    expect(words(used.stdout)[3]).toMatch(
      /^ip \| 2\/m \| 0 of 2 left, enough in [\d.]+s \| rate_limit:login:ip:203\.0\.113\.7$/,
    )
    expect(words(used.stdout).at(-1)).toMatch(
      /^Would be refused with 429: login\/ip has too little left; retry in [\d.]+s\.$/,
    )
    const unused = await explain('POST', '/api/login', '--ip', '203.0.113.8', '-c', 'redis.yaml')
    expect([unused.code, unused.stdout.includes('memory')]).toEqual([0, false])
    expect(await redis.command('GET', counter)).toBe(before)
    expect(await redis.command('DBSIZE')).toBe(':1')
  })

  it('exits 1 where a list refuses', async () => {
    const { code, stdout } = await explain('GET', '/api/orders', '--ip', '198.51.100.3')
    expect([code, words(stdout).at(-1)]).toEqual([1, 'Would be refused with 403: banned denies it.'])
  })

  it('says all of it as JSON', async () => {
    const { code, stdout } = await explain('get', '/api/orders', '-H', 'x-user-id: 42', '--json')
    expect(code).toBe(0)
    const said = JSON.parse(stdout)
    expect(said).toMatchObject({
      request: { method: 'GET', path: '/api/orders', query: '', ip: '127.0.0.1', trusted: false, route: '/api/*' },
      allowed: true,
      budget: 'unused',
      decision: { allowed: true, source: 'store', degraded: false },
    })
    expect(said.rules[0]).toMatchObject({ rule: 'orders', matched: true, cost: 1 })
    expect(said.rules[0].limits[1]).toMatchObject({
      name: 'user',
      key: 'rate_limit:orders:user:42',
      remaining: 5,
      capacity: 5,
    })
    expect(said.rules[1]).toEqual({
      rule: 'login',
      kind: 'limits',
      matched: false,
      why: 'the path is none of /api/login',
      limits: [],
    })
    const refused = await explain('GET', '/a%2Fb', '--json')
    expect(JSON.parse(refused.stdout)).toEqual({ rules: [], allowed: false, status: 400, why: 'the path has %2F' })
  })

  it('without Redis still shows what matches, names the store without its password, and exits 3', async () => {
    const [text, json] = await Promise.all([
      explain('GET', '/api/orders', '-c', 'away.yaml'),
      explain('GET', '/api/orders', '-c', 'away.yaml', '--json'),
    ])
    expect(text.code).toBe(3)
    expect(words(text.stdout)).toContain('global | 800/s burst 120 | rate_limit:orders:global:')
    expect(text.stderr).toMatch(
      /^headgate: redis:\/\/127\.0\.0\.1:\d+ is unreachable \(connect ECONNREFUSED .*\); start it, or correct store: in away\.yaml\n$/,
    )
    expect(json.code).toBe(3)
    expect(JSON.parse(json.stdout)).toMatchObject({ allowed: null, error: { code: 'HEADGATE_STORE_UNAVAILABLE' } })
    expect(text.stdout + text.stderr + json.stdout + json.stderr).not.toContain('s3cret')
  })

  it('exits 2 with one line for what is no request', async () => {
    const stderr = 'headgate: "api" is not a path; write one that begins with /, or a whole URL\n'
    expect(await explain('GET', 'api')).toEqual({ code: 2, stdout: '', stderr })
  })
})
