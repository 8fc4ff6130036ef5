import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HeadgateError } from 'headgate'
import { afterEach, describe, expect, it } from 'vitest'
import { Metrics } from '../metrics/index.ts'
import { ask, type RawAnswer } from '../test-support/raw-connection.ts'
import { type AdminOptions, type Readiness, type RunningAdmin, startAdmin } from './index.ts'

const LOOPBACK = { kind: 'tcp', host: '127.0.0.1', port: 0 } as const
const READY: Readiness = { ready: true, degraded: false, draining: false }

const running: RunningAdmin[] = []
const errors: object[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((admin) => admin.close()))
  errors.length = 0
})

async function start(
  options: Partial<AdminOptions> = {},
  readiness = READY,
  metrics: Pick<Metrics, 'contentType' | 'render'> = new Metrics({ version: '1.2.3' }),
) {
  const log = { error: (details: object) => void errors.push(details) }
  const admin = await startAdmin({ listen: LOOPBACK, ...options }, { metrics, ready: () => readiness }, log)
  running.push(admin)
  return admin.address
}

function get(
  address: string,
  target: string,
  fields: readonly string[] = ['Host: localhost'],
  method = 'GET',
): Promise<RawAnswer> {
  return ask(address, `${[`${method} ${target} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`, {
    head: method === 'HEAD',
  })
}

const withHost = async (address: string, host: string) => (await get(address, '/healthz', [`Host: ${host}`])).status
const bearer = (token: string) => ['Host: localhost', `Authorization: Bearer ${token}`]
const problemOf = (answer: RawAnswer) => {
  expect(answer.field('content-type')).toBe('application/problem+json')
  return JSON.parse(answer.body.toString()) as { status: number; detail: string }
}

describe('the admin address', () => {
  it('says that it lives', async () => {
    const answer = await get(await start(), '/healthz')
    expect([answer.status, answer.body.toString()]).toEqual([200, '{"status":"ok"}'])
    expect(answer.field('cache-control')).toBe('no-store')
  })

  it.each([
    [READY, 200],
    [{ ...READY, degraded: true }, 200],
    [{ ...READY, draining: true }, 503],
    [{ ...READY, ready: false }, 503],
  ])(
    'answers readiness %j with %i: a store that is away is no reason to send requests elsewhere',
    async (readiness, status) => {
      const answer = await get(await start({}, readiness), '/readyz')
      expect(answer.status).toBe(status)
      expect(JSON.parse(answer.body.toString())).toEqual({ ...readiness, ready: status === 200 })
    },
  )

  it('gives the metrics as Prometheus reads them', async () => {
    const answer = await get(await start(), '/metrics')
    expect(answer.status).toBe(200)
    expect(answer.field('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(answer.body.toString()).toContain('# TYPE headgate_requests_total counter\n')
  })

  it('answers HEAD as GET without the body, and keeps the connection', async () => {
    const answer = await get(await start(), '/healthz', undefined, 'HEAD')
    expect([answer.status, answer.field('content-length'), answer.body.length]).toEqual([200, '15', 0])
    expect(answer.field('connection')).not.toBe('close')
  })

  it('names what there is for an unknown path, also one that an object has anyway', async () => {
    const address = await start()
    for (const path of ['/', '/metrics/', '/constructor', 'http://localhost/metrics']) {
      const answer = await get(address, path)
      expect(problemOf(answer)).toMatchObject({ status: 404, detail: 'There is /healthz, /readyz, /metrics.' })
    }
    expect((await get(address, '/healthz?probe=1')).status).toBe(200)
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s with what may be asked', async (method) => {
    const address = await start()
    const answer = await get(address, '/metrics', ['Host: localhost', 'Content-Length: 0'], method)
    expect(problemOf(answer).status).toBe(405)
    expect(answer.field('allow')).toBe('GET, HEAD')
  })

  it('answers 500 and goes on where a page fails', async () => {
    const broken = { contentType: 'text/plain', render: () => Promise.reject(new Error('broken')) }
    const address = await start({}, READY, broken)
    expect(problemOf(await get(address, '/metrics')).status).toBe(500)
    expect(errors).toHaveLength(1)
    expect((await get(address, '/healthz')).status).toBe(200)
  })

  it('listens on a unix socket', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'headgate-admin-'))
    const address = await start({ listen: { kind: 'unix', path: join(folder, 'admin.sock') } })
    expect((await get(address, '/healthz')).status).toBe(200)
    await rm(folder, { recursive: true })
  })
})

describe('the admin address checks the host', () => {
  it.each([
    '127.0.0.1',
    '127.0.0.1:8083',
    '[::1]',
    '[::1]:8083',
    '192.0.2.7:8083',
    'localhost',
    'LOCALHOST:8083',
    'localhost.',
  ])('and answers %s, which nobody can point elsewhere', async (host) =>
    expect(await withHost(await start(), host)).toBe(200),
  )

  it.each([
    'evil.example',
    'evil.example:8083',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '2130706433',
    '[127.0.0.1]',
    'a@localhost',
    '',
  ])('and refuses %j: a page of somebody else may have had its name pointed here (DNS rebinding)', async (host) =>
    expect(await withHost(await start({ token: 'secret' }), host)).toBe(403),
  )

  it('and answers names that are configured', async () => {
    const address = await start({ hosts: ['Headgate.internal'] })
    expect(await withHost(address, 'headgate.internal:8083')).toBe(200)
    expect(await withHost(address, 'other.internal')).toBe(403)
  })

  it('before it looks for the page, on every page', async () => {
    const address = await start()
    for (const path of ['/healthz', '/readyz', '/metrics', '/nothing']) {
      expect(problemOf(await get(address, path, ['Host: evil.example'])).status).toBe(403)
    }
  })
})

describe('the admin address asks for a token', () => {
  it('for metrics where a read token is set, and for nothing else', async () => {
    const address = await start({ token: 'writer', readToken: 'reader' })
    const refused = await get(address, '/metrics')
    expect(problemOf(refused).status).toBe(401)
    expect(refused.field('www-authenticate')).toBe('Bearer realm="headgate"')
    expect((await get(address, '/healthz')).status).toBe(200)
    expect((await get(address, '/readyz')).status).toBe(200)
  })

  it.each([
    ['reader', 200],
    ['writer', 200],
    ['reade', 401],
    ['readers', 401],
    ['', 401],
  ])('and answers Bearer %j with %i', async (token, status) => {
    const address = await start({ token: 'writer', readToken: 'reader' })
    expect((await get(address, '/metrics', bearer(token))).status).toBe(status)
  })

  it('in no other scheme', async () => {
    const address = await start({ readToken: 'reader' })
    const basic = `Authorization: Basic ${Buffer.from('x:reader').toString('base64')}`
    expect((await get(address, '/metrics', ['Host: localhost', basic])).status).toBe(401)
    expect((await get(address, '/metrics', ['Host: localhost', 'authorization: bearer reader'])).status).toBe(200)
  })

  it('for no metrics where only the token for writing is set', async () => {
    expect((await get(await start({ token: 'writer' }), '/metrics')).status).toBe(200)
  })

  it.each([[{ kind: 'tcp', host: '::', port: 0 } as const], [{ kind: 'tcp', host: '0.0.0.0', port: 0 } as const]])(
    'and does not start on %j without one',
    async (listen) => {
      await expect(start({ listen })).rejects.toThrow(HeadgateError)
      await expect(start({ listen, token: '', readToken: 'reader' })).rejects.toThrow(
        /^admin\.listen: .*set admin\.token, or listen on 127\.0\.0\.1$/,
      )
      expect(await start({ listen, token: 'writer' })).toMatch(/^http:/)
    },
  )
})

it('an admin address in use is named with what to do', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo
  await expect(start({ listen: { ...LOOPBACK, port } })).rejects.toThrow(
    `admin: cannot listen on 127.0.0.1:${port}: another process listens there`,
  )
  other.close()
})
