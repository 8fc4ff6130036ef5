import { describe, expect, it } from 'vitest'
import { errors, rules } from './test-support/rules.ts'

const store = (text: string) => `store: ${text}\ninstances: 2\nrules: []`

describe('store', () => {
  it('is memory where nothing is said', () => {
    expect(rules('rules: []')).toMatchObject({
      store: { kind: 'memory' },
      storeName: 'memory',
      prefix: 'rate_limit',
      timeoutMs: 50,
    })
  })

  it('is a Redis URL, whose credentials are not in its name', () => {
    const file = rules(store('rediss://ann:p%40ss@redis.internal:6380/3'))
    expect(file.store).toEqual({ kind: 'redis', url: 'rediss://ann:p%40ss@redis.internal:6380/3' })
    expect(file.storeName).toBe('rediss://redis.internal:6380/3')
  })

  it('is a master that Sentinels name, without its credentials in its name', () => {
    const file = rules(store('"rediss+sentinel://ann:p%40ss@h1,[::1]:26380/main/3"'))
    expect(file.store).toEqual({
      kind: 'sentinel',
      tls: true,
      sentinels: [
        { host: 'h1', port: 26379 },
        { host: '::1', port: 26380 },
      ],
      master: 'main',
      database: 3,
      username: 'ann',
      password: 'p@ss',
    })
    expect(file.storeName).toBe('rediss+sentinel://h1:26379,[::1]:26380/main/3')
    expect(rules(store('redis+sentinel://h1,h2/master')).storeName).toBe('redis+sentinel://h1:26379,h2:26379/master')
  })

  it.each([
    'redis://hunter2@',
    'redis:hunter2@host',
    'redis+cluster://u:hunter2@h1,h2/0',
    'redis+cluster://u:hunter2@h1,,h2',
    'redis+cluster://u:hunter2%@h1',
    'redis+cluster:hunter2@h1',
    'http://u:hunter2@host',
    'redis://u:hunter2@host/x',
    'redis://u:hunter2@host/0?password=hunter2',
    'redis://u:hunter2@ho st',
    'redis://u:hunter2%@host',
    'redis+sentinel://u:hunter2@h1,h2',
    'redis+sentinel://u:hunter2%@h1/main',
    'redis+sentinel://u:hunter2@h 1/main',
    'redis+sentinel://u:hunter2@h1/main/hunter2',
    'hunter2',
    'Memory',
  ])('%s is refused without showing any of it', (url) => {
    const found = errors(store(JSON.stringify(url)))
    expect(found).toHaveLength(1)
    expect(found[0]).not.toContain('hunter2')
    expect(found[0]).toContain('write ')
  })

  it('is a cluster, by some of its servers, with one login for all', () => {
    const file = rules(store('rediss+cluster://ann:p%40ss@a.internal:7000,b.internal'))
    expect(file.store).toEqual({
      kind: 'redis-cluster',
      tls: true,
      username: 'ann',
      password: 'p@ss',
      hosts: ['a.internal:7000', 'b.internal:6379'],
    })
    expect(file.storeName).toBe('rediss+cluster://a.internal:7000,b.internal:6379')
    expect(rules(store('redis+cluster://[::1]:7000')).storeName).toBe('redis+cluster://[::1]:7000')
  })

  it('is taken from the environment', () => {
    expect(rules(store('"${STORE:-memory}"')).store.kind).toBe('memory')
    expect(rules(store('"${STORE:-memory}"'), { STORE: 'redis://h' }).storeName).toBe('redis://h')
  })

  it.each(['a:b', 'a{b}', '~', 'a b', '""'])(
    'a prefix of %s is refused, since keys of two deployments could meet',
    (prefix) => {
      expect(errors(`prefix: ${prefix}\nrules: []`)[0]).toContain('VALUE prefix')
    },
  )
})
