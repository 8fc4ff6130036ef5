import { execFile } from 'node:child_process'
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
