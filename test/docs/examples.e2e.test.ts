import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../fresh-build.ts'
import { freePort, startRedis } from '../redis.ts'
import { document, ROOT } from './markdown.ts'

const runFile = promisify(execFile)

beforeAll(assertFreshBuild)

/** The lines that the script prints. */
async function checkout(environment: Record<string, string> = {}): Promise<string[]> {
  const env = { ...process.env, ...environment }
  const { stdout } = await runFile(process.execPath, [join(ROOT, 'examples/library/checkout.mjs')], { env })
  return stdout.trimEnd().split('\n')
}

/** How much of the shared budget is back by then depends on the machine. */
const steady = (line: string) => line.replace(/global: \d+/, 'global: N')

describe('examples/library', () => {
  it('prints what its README shows', async () => {
    const shown = document('examples/library/README.md').blocks.find(({ code }) => code.startsWith('1 allowed'))
    expect((await checkout()).map(steady)).toEqual(shown?.code.trimEnd().split('\n').map(steady))
  })

  it('shares its budget with a second process on Redis', async () => {
    const redis = await startRedis()
    try {
      const first = await checkout({ HEADGATE_STORE: redis.url })
      expect(first.filter((line) => line.includes('allowed')).length).toBe(5)
      const second = await checkout({ HEADGATE_STORE: redis.url })
      expect(second.filter((line) => line.includes('refused by customer')).length).toBe(6)
    } finally {
      await redis.stop()
    }
  })

  it('goes on with its share where nobody listens at the address', async () => {
    const lines = await checkout({ HEADGATE_STORE: `redis://127.0.0.1:${await freePort()}`, INSTANCES: '2' })
    expect(lines[0]).toMatch(/^without the store: /)
    expect(lines[1]).toBe('1 allowed, 1 left (local)')
    expect(lines[3]).toMatch(/^3 refused by customer, .*\(local\)$/)
  })
})

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a script of examples/ to its end, by whatever way it ends. */
async function ended(script: string, ...args: string[]): Promise<Ended> {
  const env = { ...process.env, HEADGATE_STORE: 'memory' }
  return new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, 'examples', script), ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

describe('examples/product-detail', () => {
  it.each([
    [['--rat', '5'], "Unknown option '--rat'; write node examples/product-detail/load.mjs [--rate 2400]"],
    [['--rate', 'many'], '--rate "many" is not a number above 0; write node examples'],
    [[], 'no gateway listens on 127.0.0.1:8181: start node examples/product-detail/run.mjs first'],
  ])('load.mjs %j says in one line what is wrong', async (args, line) => {
    const { code, stdout, stderr } = await ended('product-detail/load.mjs', ...args)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(line)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  it('load.mjs --help says what can be chosen', async () => {
    const { code, stdout } = await ended('product-detail/load.mjs', '--help')
    expect([code, stdout]).toEqual([0, expect.stringContaining('[--users 1500]')])
  })

  it('run.mjs ends as a whole where one gateway cannot start, and says which', async () => {
    const taken = createServer().listen(8182, '127.0.0.1')
    await once(taken, 'listening')
    const { code, stderr } = await ended('product-detail/run.mjs')
    taken.close()
    expect(code).toBe(1)
    expect(stderr).toContain('[2] headgate: gateway: cannot listen on 127.0.0.1:8182')
    expect(stderr).toContain('[2] ended (exit code 1), so all are stopped')
  })
})

it('examples/quickstart/curl.mjs is quiet where nobody reads on', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${'x\n'.repeat(50_000)}`))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const script = join(ROOT, 'examples/quickstart/curl.mjs')
  const command = `"${process.execPath}" "${script}" -i "http://127.0.0.1:${port}/?n=[1-9]" | head -n 1`
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', command])
  server.close()
  expect([stdout, stderr]).toEqual(['HTTP/1.1 200 OK\n', ''])
})
