import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../../../../test/fresh-build.ts'
import { freePort, type RedisServer, startRedis } from '../../../../test/redis.ts'
import { folderWith, headgate } from '../test-support/headgate.ts'
import { ordersFile } from '../test-support/rules.ts'
import { block, spend } from '../test-support/spend.ts'

let cwd = ''
let redis: RedisServer
let rules = ''
beforeAll(async () => {
  assertFreshBuild()
  redis = await startRedis()
  rules = ordersFile(redis.url)
  const away = ordersFile(`redis://:s3cret@127.0.0.1:${await freePort()}`)
  cwd = folderWith({ 'headgate.yaml': rules, 'memory.yaml': ordersFile('memory'), 'away.yaml': away }, afterAll)
})
afterAll(() => redis?.stop())
beforeEach(() => redis.command('FLUSHALL'))

const run = (line: string) => headgate(line.split(' '), { cwd })
const cells = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/))

describe('headgate peek', () => {
  it('shows what a key has left, when there is more, and the key in Redis', async () => {
    await spend(rules, 'orders', { user: '42' }, 2)
    const { code, stdout, stderr } = await run('peek orders --key user=42')
    expect([code, stderr]).toEqual([0, ''])
    expect(cells(stdout)).toEqual([
      [
        'orders/user',
        '5/m',
        expect.stringMatching(/^3 of 5 left, more in [\d.]+s$/),
        expect.stringMatching(/^unused in [\d.]+s$/),
        'rate_limit:orders:user:42',
      ],
    ])
  })

  it('exits 1 and says until when, where a limit would refuse', async () => {
    await spend(rules, 'login', { ip: '203.0.113.7' }, 2)
    const { code, stdout } = await run('peek login 203.0.113.7')
    expect(code).toBe(1)
    expect(cells(stdout)[0]?.[2]).toMatch(/^0 of 2 left, enough in [\d.]+s$/)
    expect(cells(stdout)[1]).toEqual([
      expect.stringMatching(/^Refused now: login\/ip has too little left; retry in [\d.]+s\.$/),
    ])
  })

  it('changes nothing, and creates nothing for a key that was never seen', async () => {
    expect((await run('peek orders --key user=42')).code).toBe(0)
    expect(await redis.command('DBSIZE')).toBe(':0')
  })

  it('brings a value to the form in which requests count it', async () => {
    const { stdout } = await run('peek login 2001:db8:1:2:3::9 --json')
    expect(JSON.parse(stdout)).toMatchObject({
      store: redis.url,
      allowed: true,
      limits: [{ key: 'rate_limit:login:ip:2001%3Adb8%3A1%3A2%3A%3A', limit: 2, periodMs: 60_000, remaining: 2 }],
    })
  })

  it('uses the numbers of an override', async () => {
    const { stdout } = await run('peek orders/user vip-7')
    expect(cells(stdout)[0]?.slice(0, 3)).toEqual(['orders/user', '100/m', '100 of 100 left'])
    const unlimited = await run('peek orders/user acme')
    expect([unlimited.code, unlimited.stdout]).toEqual([
      0,
      'orders/user: unlimited for this key, so nothing is counted\n',
    ])
  })
})

describe('headgate reset', () => {
  it('gives a key its whole budget back, and no other key', async () => {
    await spend(rules, 'login', { ip: '203.0.113.7' }, 2)
    await spend(rules, 'login', { ip: '203.0.113.8' }, 2)
    const { code, stdout, stderr } = await run('reset login 203.0.113.7')
    expect([code, stderr]).toEqual([0, ''])
    expect(cells(stdout)).toEqual([['login/ip', '2/m', 'reset, had 0 of 2 left', 'rate_limit:login:ip:203.0.113.7']])
    expect((await run('peek login 203.0.113.7')).code).toBe(0)
    expect((await run('peek login 203.0.113.8')).code).toBe(1)
  })

  it('leaves the budget that all share alone unless that is named', async () => {
    await spend(rules, 'reports', {}, 3)
    await spend(rules, 'reports', { user: '42' }, 3)
    const { stdout } = await run('reset reports 42 --json')
    expect(JSON.parse(stdout)).toEqual({
      store: redis.url,
      reset: [{ rule: 'reports', name: 'user', key: 'rate_limit:reports:user:42', capacity: 5, remainingBefore: 2 }],
    })
    expect(await redis.command('EXISTS', 'rate_limit:reports:global:')).toBe(':1')
  })
})

describe.each(['peek', 'reset'])('headgate %s', (command) => {
  it('exits 2 with one line for an unknown rule', async () => {
    const stderr = 'headgate: there is no rule "ordes"; did you mean orders\n'
    expect(await run(`${command} ordes 42`)).toEqual({ code: 2, stdout: '', stderr })
  })

  it('exits 2 with store: memory, and says why', async () => {
    const { code, stdout, stderr } = await run(`${command} login 203.0.113.7 -c memory.yaml`)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(
      /^headgate: (peek|reset) needs a shared store: with store: memory the counters are inside .*\n$/,
    )
  })

  it('exits 3 without Redis, and names it without its password', async () => {
    const { code, stdout, stderr } = await run(`${command} login 203.0.113.7 -c away.yaml --json`)
    expect(code).toBe(3)
    expect(stderr).toMatch(
      /^headgate: redis:\/\/127\.0\.0\.1:\d+ is unreachable \(connect ECONNREFUSED .*\); start it, or correct store: in away\.yaml\n$/,
    )
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'HEADGATE_STORE_UNAVAILABLE' } })
    expect(stdout + stderr).not.toContain('s3cret')
  })

  it('exits 3 in a few seconds where Redis hangs', async () => {
    redis.pause()
    try {
      const { code, stderr } = await run(`${command} login 203.0.113.7`)
      expect(code).toBe(3)
      expect(stderr).toMatch(
        /^headgate: redis:\/\/127\.0\.0\.1:\d+ is unreachable \(no (connection|answer .*) within \d+ ms\); start it/,
      )
    } finally {
      redis.resume()
    }
  })

  it('exits 3 where Redis lets nobody in', async () => {
    const guarded = await startRedis(['--requirepass', 'right'])
    try {
      const [none, wrong] = await Promise.all(
        ['', ':wrong@'].map((login, i) => {
          writeFileSync(join(cwd, `login-${i}.yaml`), ordersFile(`redis://${login}127.0.0.1:${guarded.port}`))
          return run(`${command} login 203.0.113.7 -c login-${i}.yaml`)
        }),
      )
      expect([none?.code, wrong?.code]).toEqual([3, 3])
      expect(none?.stderr).toMatch(
        /lets nobody in \(NOAUTH .*correct the user and password in store: of login-0\.yaml\n$/,
      )
      expect(wrong?.stderr).toMatch(
        /lets nobody in \(WRONGPASS .*correct the user and password in store: of login-1\.yaml\n$/,
      )
      expect(wrong?.stderr).not.toContain(':wrong@')
    } finally {
      await guarded.stop()
    }
  })
})

it('says of a blocked key that it is blocked, also once it is reset', async () => {
  await spend(rules, 'login', { ip: '203.0.113.7' }, 2)
  await block(rules, 'login', { ip: '203.0.113.7' })
  const refused = /login\/ip is blocked; retry in (1h|59m .*)\.$/
  const peeked = cells((await run('peek login 203.0.113.7')).stdout)
  expect([peeked[0]?.[2], peeked[1]?.[0]]).toEqual(['blocked, 0 of 2 left', expect.stringMatching(refused)])
  const explained = await run('explain POST /api/login --ip 203.0.113.7')
  expect(explained.stdout.trimEnd()).toMatch(refused)
  expect(cells((await run('reset login 203.0.113.7')).stdout)[0]?.[2]).toBe('reset, had 0 of 2 left, still blocked')
  expect(JSON.parse((await run('reset login 203.0.113.7 --json')).stdout).reset[0]).toMatchObject({ blocked: true })
  expect(cells((await run('peek login 203.0.113.7')).stdout)[0]?.[2]).toBe('blocked, 2 of 2 left')
})

describe('every algorithm in its own words', () => {
  const limits = [
    '{ name: bucket, by: user, limit: 5/h, burst: 3 }',
    '{ name: line, by: user, limit: 1/h, queue: 4, algorithm: leaky-bucket }',
    '{ name: day, by: user, limit: 1000/day, algorithm: fixed-window, align: calendar, timeZone: Asia/Shanghai, overrides: { acme: 9/month } }',
    '{ name: slices, by: user, limit: 20/h, algorithm: sliding-window }',
    '{ name: log, by: user, limit: 20/h, algorithm: sliding-log }',
    '{ name: slots, by: user, limit: 10, algorithm: concurrency, overrides: { acme: 20 } }',
    '{ name: own, by: user, limit: 5/h, scope: instance }',
  ]
  const texts = [
    ['bucket', '5/h burst 3'],
    ['line', '1/h leaky-bucket, queue 4'],
    ['day', '1000/day, calendar Asia/Shanghai'],
    ['slices', '20/h sliding-window, 10 slices'],
    ['log', '20/h sliding-log'],
    ['slots', '10 held at once, ttl 1m'],
    ['own', '5/h, each instance its own'],
  ]
  const states = [
    /^2 of 3 left, more in 1[12]m/,
    /^1 of 5 in line, the next waits (1h|59m)/,
    /^999 of 1000 left, window ends in .* at \d{4}-\d\d-\d\d 00:00:00 Asia\/Shanghai$/,
    /^19 of 20 left, more in /,
    /^19 of 20 left, more in /,
    /^1 of 10 held, the first lapses in [\d.]+(s|m)$/,
    /^each instance counts for itself, not in the store$/,
  ]
  const rule = () =>
    `store: ${redis.url}\ninstances: 2\ndimensions: { user: { header: x-user } }\nrules:\n  - name: all\n    description: d\n    limits:\n${limits.map((limit) => `      - ${limit}`).join('\n')}\n`

  it('is shown by peek, by explain and by reset, as text and as JSON', async () => {
    writeFileSync(join(cwd, 'all.yaml'), rule())
    await spend(rule(), 'all', { user: '42' }, 1)
    const peeked = cells((await run('peek all --key user=42 -c all.yaml')).stdout)
    expect(peeked.map(([name, text]) => [name, text])).toEqual(texts.map(([name, text]) => [`all/${name}`, text]))
    const explained = cells((await run('explain GET / -H x-user:42 -c all.yaml')).stdout).slice(-9, -2)
    expect(explained.map(([, name, text]) => [name, text])).toEqual(texts)
    for (const [i, state] of states.entries()) {
      expect(peeked[i]?.[2]).toMatch(state)
      expect(explained[i]?.[3]).toMatch(state)
    }
    const { limits: data } = JSON.parse((await run('peek all --key user=42 -c all.yaml --json')).stdout)
    expect(data[2]).toMatchObject({
      algorithm: 'fixed-window',
      text: '1000/day, calendar Asia/Shanghai',
      timeZone: 'Asia/Shanghai',
      remaining: 999,
      windowEndsAt: expect.stringMatching(/T16:00:00\.000Z$/),
    })
    expect(data[5]).toMatchObject({ algorithm: 'concurrency', text: '10 held at once, ttl 1m', remaining: 9 })
    expect(data[6]).toMatchObject({ scope: 'instance' })
    const reset = cells((await run('reset all --key user=42 -c all.yaml')).stdout)
    expect([reset[1]?.[2], reset[5]?.[2], reset[6]?.[2]]).toEqual([
      'reset, had 1 of 5 in line',
      'reset, had 1 of 10 held',
      'each instance counts for itself, not in the store',
    ])
    const acme = cells((await run('peek all --key user=acme -c all.yaml')).stdout)
    expect([acme[2]?.[1], acme[5]?.[1]]).toEqual(['9/month, calendar Asia/Shanghai', '20 held at once, ttl 1m'])
  })
})
