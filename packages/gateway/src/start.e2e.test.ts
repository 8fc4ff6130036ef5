import { parseRules } from '@headgate/rules'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startRedis } from '../../../test/redis.ts'
import { startGateway } from './start.ts'
import { TestGateway, testFile } from './test-support/gateway.ts'
import { ask, get } from './test-support/raw-connection.ts'
import { slowStore } from './test-support/slow-store.ts'
import { TestUpstream } from './test-support/upstream.ts'

const rules = [{ name: 'all', match: { path: '/*' }, limits: [{ by: 'ip', limit: '3/h' }] }]
const admin = { listen: '127.0.0.1:0' }

async function page(address: string | undefined, path: string): Promise<{ status: number; text: string }> {
  const answer = await ask(address as string, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  return { status: answer.status, text: answer.body.toString() }
}

describe('a started gateway', () => {
  it('serves its admin address beside the gateway, and counts what it does', async () => {
    const up = await TestUpstream.start()
    const { address, running } = await TestGateway.start({ upstreams: [up.origin], rules, admin })
    for (let i = 0; i < 5; i++) await ask(address, get('/'))
    await ask(address, 'NONSENSE\r\n\r\n')
    expect(await page(running.adminAddress, '/readyz')).toMatchObject({ status: 200 })
    const { text } = await page(running.adminAddress, '/metrics')
    expect(text).toContain('headgate_requests_total{outcome="allowed"} 3')
    expect(text).toContain('headgate_requests_total{outcome="limited"} 2')
    expect(text).toContain('headgate_requests_total{outcome="error"} 1')
    expect(text).toContain('headgate_decisions_total{rule="all",limit="ip",outcome="limited",source="store"} 2')
    expect(text).toContain('headgate_upstream_responses_total{route="/*",code="200"} 3')
  })

  it('is not ready while it drains, and takes its admin address away at the end', async () => {
    const up = await TestUpstream.start((_req, res) => void setTimeout(() => res.end(), 300))
    const { address, running } = await TestGateway.start({ upstreams: [up.origin], admin })
    const slow = ask(address, get('/'))
    await expect.poll(() => up.open).toBe(1)
    const drained = running.drain()
    expect((await page(running.adminAddress, '/readyz')).status).toBe(503)
    expect((await slow).status).toBe(200)
    await drained
    await expect(page(running.adminAddress, '/readyz')).rejects.toThrow('ECONNREFUSED')
  })

  it('starts without Redis, says so once, and is exact again when Redis is back', async () => {
    const up = await TestUpstream.start()
    const { url, network } = await slowStore()
    await network.refuse()
    const gateway = await TestGateway.start({ upstreams: [up.origin], rules, store: url, admin })
    for (let i = 0; i < 4; i++) await ask(gateway.address, get('/'))
    expect((await page(gateway.running.adminAddress, '/readyz')).text).toContain('"degraded":true')
    expect(gateway.lines.filter(({ message }) => message.startsWith('store is away')).length).toBe(1)
    await network.accept()
    await expect
      .poll(() => gateway.lines.map(({ message }) => message), { timeout: 5000 })
      .toContain('store answers again')
    await ask(gateway.address, get('/'))
    const { text } = await page(gateway.running.adminAddress, '/metrics')
    expect(text).toMatch(/^headgate_store_duration_seconds_count [1-9]/m)
  })

  it('keeps its rules when a reload failed, and shows that', async () => {
    const { running } = await TestGateway.start({ rules, admin })
    running.reloadFailed()
    expect((await page(running.adminAddress, '/metrics')).text).toContain('headgate_rules_last_reload_successful 0')
    running.apply(testFile({ rules }))
    expect((await page(running.adminAddress, '/metrics')).text).toContain('headgate_rules_last_reload_successful 1')
  })

  it('goes on where Redis asks for no password, and says so once instead of at each connection', async () => {
    const warned = vi.spyOn(console, 'warn')
    onTestFinished(() => warned.mockRestore())
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const store = redis.url.replace('redis://', 'redis://:s3cret@')
    const up = await TestUpstream.start()
    const gateway = await TestGateway.start({ upstreams: [up.origin], rules, store, timeout: '1s' })
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal')
    const counted = async () => {
      await ask(gateway.address, get('/'))
      return redis.command('KEYS', '*all*')
    }
    await expect.poll(counted, { timeout: 5000 }).toContain('all')
    const needless = gateway.lines.filter(({ message }) => message.startsWith('the store asks for no password'))
    expect(needless).toHaveLength(1)
    expect(warned).not.toHaveBeenCalled()
  })

  it('never shows a password', async () => {
    const gateway = await TestGateway.start({ rules, store: 'redis://me:s3cret@127.0.0.1:1' })
    await ask(gateway.address, get('/'))
    expect(JSON.stringify(gateway.lines)).not.toContain('s3cret')
  })
})

describe('a gateway that cannot start', () => {
  it('leaves nothing listening', async () => {
    const first = await TestGateway.start({})
    const { port } = new URL(first.address)
    const admined = { gateway: { listen: `127.0.0.1:${port}` }, admin: { listen: '127.0.0.1:0' } }
    await expect(TestGateway.start(admined)).rejects.toMatchObject({ code: 'HEADGATE_LISTEN' })
    await expect(TestGateway.start({ admin: { listen: `127.0.0.1:${port}` } })).rejects.toThrow(
      /^admin: cannot listen on/,
    )
  })

  it.each([
    ['/nodir/x.sock', 'there is no folder /nodir; create it (EACCES)'],
    ['/nodir/deep/x.sock', 'there is no folder /nodir/deep; create it (EACCES)'],
  ])('names the folder that unix:%s misses', async (path, advice) => {
    const started = TestGateway.start({ gateway: { listen: `unix:${path}` } })
    await expect(started).rejects.toThrow(`gateway: cannot listen on unix:${path}: ${advice}`)
  })

  it('refuses a misspelt option', async () => {
    const options = { loger: undefined } as object
    await expect(startGateway(testFile({}), options)).rejects.toThrow('startGateway.loger: no such option')
  })

  it('says that its file has no gateway', async () => {
    const file = parseRules('rules: []', { file: 'only-rules.yaml' })
    await expect(startGateway(file)).rejects.toMatchObject({ code: 'HEADGATE_USAGE', message: /only-rules\.yaml/ })
  })
})
