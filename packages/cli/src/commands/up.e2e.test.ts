import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { assertFreshBuild } from '../../../../test/fresh-build.ts'
import { freePort, startRedis } from '../../../../test/redis.ts'
import { folderWith, headgate, headgateUp } from '../test-support/headgate.ts'

let upstream: Server
/** Answers `slow` in half a second, `never` not at all, everything else at once. */
beforeAll(async () => {
  assertFreshBuild()
  upstream = createServer((req, res) => {
    if (req.url === '/never') return
    setTimeout(() => res.end('served'), req.url === '/slow' ? 500 : 0)
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
})
afterAll(() => {
  upstream.close()
  upstream.closeAllConnections()
})

interface Setup {
  store?: string
  limit?: string
  port?: number
  admin?: number
}

function rules({ store = 'memory', limit = '2/h', port = 0, admin = 0 }: Setup = {}): string {
  const { port: behind } = upstream.address() as AddressInfo
  return `
store: ${store}
instances: 2
gateway:
  listen: 127.0.0.1:${port}
  drain: 5s
  routes: [{ path: /*, upstream: ["http://127.0.0.1:${behind}"] }]
admin: { listen: "127.0.0.1:${admin}" }
rules:
  - { name: all, description: d, limits: [{ by: global, limit: ${limit} }] }
`
}

/** Starts it on a file of its own. */
async function start(setup: Setup = {}, args: readonly string[] = [], env: Record<string, string> = {}) {
  const cwd = folderWith({ 'headgate.yaml': rules(setup) }, onTestFinished)
  const running = await headgateUp(args, { cwd, env })
  const [, gateway, admin] = /address=(\S+) admin=(\S+)/.exec(running.stdout) ?? []
  const file = join(cwd, 'headgate.yaml')
  return { running, gateway, admin, file, status: async (path = '/') => (await fetch(gateway + path)).status }
}

const metric = async (admin: string | undefined, name: string) => {
  const text = await (await fetch(`${admin}/metrics`)).text()
  return text
    .split('\n')
    .find((line) => line.startsWith(`${name} `))
    ?.slice(name.length + 1)
}

describe('headgate up', () => {
  it('serves, prints its addresses, and ends with 0 on SIGTERM', async () => {
    const { running, gateway, admin, status } = await start()
    expect(running.stdout).toMatch(
      /^\S+Z info {2}gateway listens address=http:\/\/127\.0\.0\.1:\d+ admin=http:\S+ store=memory/,
    )
    expect([gateway, admin]).toEqual([expect.any(String), expect.any(String)])
    expect([await status(), await status(), await status()]).toEqual([200, 200, 429])
    running.signal('SIGTERM')
    expect(await running.exit).toBe(0)
    expect(running.stdout).toMatch(/info {2}stopped\n$/)
    expect(running.stderr).toBe('')
  })

  it('writes JSON lines with --json', async () => {
    const { running } = await start({}, ['--json'])
    running.signal('SIGINT')
    expect(await running.exit).toBe(0)
    const lines = running.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { msg: string })
    expect(lines.map(({ msg }) => msg)).toEqual([
      'gateway listens',
      'stopping: requests under way finish first',
      'stopped',
    ])
    expect(lines[0]).toMatchObject({ address: expect.stringMatching(/^http:/), store: 'memory' })
  })

  it('finishes requests under way before it ends', async () => {
    const { running, status } = await start()
    const slow = status('/slow')
    await new Promise((resolve) => upstream.once('request', resolve))
    running.signal('SIGTERM')
    expect(await slow).toBe(200)
    expect(await running.exit).toBe(0)
  })

  it('ends at once when it is told again', async () => {
    const { running, status } = await start()
    const never = status('/never').catch(() => 'cut')
    await new Promise((resolve) => upstream.once('request', resolve))
    running.signal('SIGTERM')
    await running.says('stopping')
    const toldAtMs = performance.now()
    running.signal('SIGTERM')
    expect(await running.exit).toBe(0)
    expect(await never).not.toBe(200)
    expect(performance.now() - toldAtMs).toBeLessThan(4000)
  })

  it('logs an error that nobody caught, ends in order, and exits 1', async () => {
    const preload = "process.on('SIGUSR2',()=>{Promise.reject(new Error('boom'))})"
    const { running } = await start({}, [], {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
    })
    running.signal('SIGUSR2')
    expect(await running.exit).toBe(1)
    expect(running.stdout).toMatch(/ error unhandledRejection: a fault of Headgate's, please report it err=boom\n/)
    expect(running.stdout).toMatch(/info {2}stopped\n$/)
  })
})

describe('headgate up does not start', () => {
  it('where a port is in use, and names the setting, the address and what to do', async () => {
    const { port } = upstream.address() as AddressInfo
    const cwd = folderWith({ 'gateway.yaml': rules({ port }), 'admin.yaml': rules({ admin: port }) }, onTestFinished)
    const [gateway, admin] = await Promise.all(
      ['gateway', 'admin'].map((name) => headgate(['up', '-c', `${name}.yaml`], { cwd })),
    )
    expect([gateway?.code, admin?.code]).toEqual([1, 1])
    const inUse = `cannot listen on 127.0.0.1:${port}: another process listens there; stop it or change the address (EADDRINUSE)\n`
    expect(gateway?.stderr).toBe(`headgate: gateway: ${inUse}`)
    expect(admin?.stderr).toBe(`headgate: admin: ${inUse}`)
  })

  it('where the file has nothing to run', async () => {
    const cwd = folderWith({ 'headgate.yaml': 'rules: []' }, onTestFinished)
    const stderr = 'headgate: ./headgate.yaml has no gateway: add gateway: with listen: and routes:\n'
    expect(await headgate(['up'], { cwd })).toEqual({ code: 2, stdout: '', stderr })
  })
})

describe('headgate up without Redis', () => {
  it('starts degraded and says so, serves, and says when Redis is there', async () => {
    const port = await freePort()
    const { running, admin, status } = await start({ store: `redis://:s3cret@127.0.0.1:${port}`, limit: '1000/h' })
    await running.says('store is away')
    expect(running.stdout).toContain(`store=redis://127.0.0.1:${port} reason="connect ECONNREFUSED`)
    expect(await (await fetch(`${admin}/readyz`)).json()).toMatchObject({ ready: true, degraded: true })
    expect(await status()).toBe(200)
    const redis = await startRedis(['--requirepass', 's3cret'], port)
    onTestFinished(() => redis.stop())
    await running.says('store answers again')
    expect(await (await fetch(`${admin}/readyz`)).json()).toMatchObject({ degraded: false })
    expect(running.stdout).not.toContain('s3cret')
  })
})

describe('headgate up reloads the rule file', () => {
  it('on SIGHUP, and says so in its metrics', async () => {
    const { running, admin, file, status } = await start()
    expect([await status(), await status(), await status()]).toEqual([200, 200, 429])
    writeFileSync(file, rules({ limit: '100/h' }))
    running.signal('SIGHUP')
    await running.says('rules are in force')
    expect(await status()).toBe(200)
    expect(Number(await metric(admin, 'headgate_rules_reload_total{result="success"}'))).toBeGreaterThanOrEqual(1)
    expect(await metric(admin, 'headgate_rules_last_reload_successful')).toBe('1')
  })

  it('when it is replaced, as editors do', async () => {
    const { running, file, status } = await start()
    writeFileSync(`${file}.new`, rules({ limit: '1/h' }))
    renameSync(`${file}.new`, file)
    await running.says('rules are in force')
    expect([await status(), await status()]).toEqual([200, 429])
  })

  it('but never a broken one: the rules in force stay, log and metrics say so', async () => {
    const { running, admin, file, status } = await start()
    writeFileSync(file, rules({ limit: '5/x' }))
    running.signal('SIGHUP')
    await running.says('the rule file was not reloaded: the rules in force stay')
    expect(running.stdout).toMatch(
      / error \.\/headgate\.yaml:10:\d+: error\[HEADGATE_RULES_VALUE\]: rules\[0\]\.limits\[0\]\.limit: "5\/x"/,
    )
    expect([await status(), await status(), await status()]).toEqual([200, 200, 429])
    expect(await metric(admin, 'headgate_rules_last_reload_successful')).toBe('0')
    writeFileSync(file, rules({ limit: '100/h' }))
    await running.says('rules are in force')
    expect(await status()).toBe(200)
    expect(await metric(admin, 'headgate_rules_last_reload_successful')).toBe('1')
  })

  it('and names changes that wait for a restart', async () => {
    const { running, file, status } = await start()
    writeFileSync(file, `prefix: other\ntimeout: 20ms\n${rules({ limit: '1/h', port: 1 })}`)
    running.signal('SIGHUP')
    await running.says('these changes wait for a restart settings=prefix,timeout,gateway.listen')
    expect([await status(), await status()]).toEqual([200, 429])
  })
})
