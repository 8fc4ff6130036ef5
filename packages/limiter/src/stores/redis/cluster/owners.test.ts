import { describe, expect, it } from 'vitest'
import { addressOf, seedOf } from './client.ts'
import { readOwners, readRedirection } from './owners.ts'
import { TAG_COUNT } from './tags.ts'

const ASKED = { host: '127.0.0.1', port: 7000 }

describe('who keeps what', () => {
  it('is read from CLUSTER SLOTS, a node without a name being the one that was asked', () => {
    const reply = [
      [0, 5460, ['', 7000, 'id'], ['127.0.0.1', 7003, 'id']],
      [5461, 10_922, ['10.0.0.2', 7001, 'id', ['hostname', 'b']]],
      [10_923, 16_000, [null, 7002, 'id']],
    ]
    const owners = readOwners(reply, ASKED)
    expect(owners).toHaveLength(TAG_COUNT)
    expect(owners[0]).toEqual({ host: '127.0.0.1', port: 7000 })
    expect(owners[30]).toEqual({ host: '10.0.0.2', port: 7001 })
    expect(owners[60]).toEqual({ host: '127.0.0.1', port: 7002 })
    expect(owners[63]).toBeUndefined()
    expect(() => readOwners('OK', ASKED)).toThrow('CLUSTER SLOTS was answered by "OK"')
  })

  it('is told by MOVED and ASK, also from inside the text of a script', () => {
    const to = { host: '10.0.0.2', port: 6381 }
    expect(readRedirection('MOVED 3999 10.0.0.2:6381', ASKED)).toEqual({ asking: false, to })
    expect(readRedirection('ERR Error running script: -MOVED 3999 10.0.0.2:6381', ASKED)).toEqual({ asking: false, to })
    expect(readRedirection('ASK 3999 10.0.0.2:6381', ASKED)).toEqual({ asking: true, to })
    expect(readRedirection('MOVED 3999 :6381', ASKED)?.to).toEqual({ host: '127.0.0.1', port: 6381 })
    expect(readRedirection('MOVED 3999 2001:db8::1:6381', ASKED)?.to).toEqual({ host: '2001:db8::1', port: 6381 })
    expect(readRedirection('TRYAGAIN Multiple keys request during rehashing of slot', ASKED)).toBeUndefined()
  })

  it('begins with the servers that a client names', () => {
    expect(addressOf('[::1]:7000')).toEqual({ host: '::1', port: 7000 })
    expect([addressOf('host'), addressOf(':7000'), addressOf('host:70000')]).toEqual([undefined, undefined, undefined])
    expect(seedOf('rediss://user:p%40ss@host')).toEqual({
      seed: { host: 'host', port: 6379 },
      username: 'user',
      password: 'p@ss',
      tls: true,
    })
  })
})
