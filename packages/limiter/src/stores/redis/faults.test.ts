import { describe, expect, it } from 'vitest'
import { StoreFault } from '../../store.ts'
import { downFault, faultOf, isNoScript } from './faults.ts'

const script = (code: string) =>
  `ERR Error running script (call to f_4f7e): @user_script:2: @user_script: 2: -${code} and so on`

describe('faultOf', () => {
  it.each([
    ['NOSCRIPT No matching script. Please use EVAL.', 'script'],
    ['LOADING Redis is loading the dataset in memory', 'loading'],
    ["READONLY You can't write against a read only replica.", 'readonly'],
    ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'readonly'],
    ['NOREPLICAS Not enough good replicas to write.', 'readonly'],
    ['MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.', 'readonly'],
    ["OOM command not allowed when used memory > 'maxmemory'. script: 5c2f, on @user_script:12.", 'full'],
    ['BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.', 'busy'],
    ['UNKILLABLE Sorry the script already executed write commands against the dataset.', 'busy'],
    ['NOAUTH Authentication required.', 'auth'],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'auth'],
    ['ERR invalid password', 'auth'],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'permission'],
    ["ERR The user executing the script can't run this command or subcommand script: 5c2f", 'permission'],
    ['CLUSTERDOWN The cluster is down', 'cluster'],
    ['TRYAGAIN Multiple keys request during rehashing of slot', 'cluster'],
    ['MOVED 3999 127.0.0.1:6381', 'cluster'],
    ['ASK 3999 127.0.0.1:6381', 'cluster'],
    ["CROSSSLOT Keys in request don't hash to the same slot", 'cluster'],
    ['ERR max number of clients reached', 'connection'],
    ['ERR Error running script (user_script): Script killed by user with SCRIPT KILL...', 'script'],
  ])('reads %s', (message, kind) => {
    expect(faultOf(new Error(message))).toMatchObject({ kind, message, notRun: true })
  })

  it.each([
    ['READONLY', 'readonly'],
    ['OOM', 'full'],
    ['LOADING', 'loading'],
    ['NOREPLICAS', 'readonly'],
    ['MISCONF', 'readonly'],
    ['MASTERDOWN', 'readonly'],
    ['NOPERM', 'permission'],
    ['BUSY', 'busy'],
    ['CLUSTERDOWN', 'cluster'],
    ['TRYAGAIN', 'cluster'],
    ['NOAUTH', 'auth'],
  ])('finds %s also inside the text of a script error (redis/ioredis#1089)', (code, kind) => {
    expect(faultOf(new Error(script(code)))).toMatchObject({ kind, notRun: true })
  })

  it.each([
    'connect ECONNREFUSED 127.0.0.1:6379',
    'read ECONNRESET',
    'Connection is closed.',
    "Stream isn't writeable and enableOfflineQueue options is false",
    'Socket closed unexpectedly',
    'The client is closed',
    'Disconnects client',
    'getaddrinfo ENOTFOUND redis.internal',
  ])('knows %s for a connection, where nobody can say whether the command ran', (message) => {
    expect(faultOf(new Error(message))).toMatchObject({ kind: 'connection', message, notRun: false })
  })

  it('takes a code only where a code stands', () => {
    for (const message of ['ERR unknown key BUSY', "ERR wrong number of arguments for 'ASK' command", 'EXECABORT x']) {
      expect(faultOf(new Error(message))).toMatchObject({ kind: 'other', notRun: false })
    }
    expect(faultOf(new Error('BUSYKEY Target key name already exists.')).kind).toBe('other')
  })

  it('finds words for errors that have no message', () => {
    expect(faultOf(new AggregateError([new Error('connect ECONNREFUSED ::1:6379')])).message).toContain('ECONNREFUSED')
    expect(faultOf(new TypeError()).message).toBe('TypeError')
    expect(faultOf('text')).toMatchObject({ kind: 'connection', message: 'text' })
    const fault = new StoreFault('timeout', 'no answer', false)
    expect(faultOf(fault)).toBe(fault)
  })
})

describe('downFault', () => {
  it('says why there is no connection, of a kind that says who can help', () => {
    expect(downFault(undefined, true)).toMatchObject({ kind: 'connection', message: 'the connection was closed' })
    expect(downFault(new Error('WRONGPASS invalid username-password pair'), true).kind).toBe('auth')
    expect(downFault(new Error('LOADING Redis is loading'), true).kind).toBe('loading')
    expect(downFault(new Error('ERR DB index is out of range'), true)).toMatchObject({
      kind: 'connection',
      notRun: true,
    })
    expect(downFault(new StoreFault('timeout', 'no answer', false), false)).toMatchObject({
      kind: 'connection',
      notRun: false,
    })
  })
})

describe('isNoScript', () => {
  it('is true only of a script that the server does not have', () => {
    expect(isNoScript(faultOf(new Error('NOSCRIPT No matching script. Please use EVAL.')))).toBe(true)
    expect(isNoScript(faultOf(new Error('ERR Script killed by user with SCRIPT KILL...')))).toBe(false)
  })
})
