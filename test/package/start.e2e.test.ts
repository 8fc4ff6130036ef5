import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../fresh-build.ts'
import { freePort, startRedis } from '../redis.ts'
import { ROOT } from './copy.ts'
import { run } from './run.ts'

const running: ChildProcess[] = []

afterEach(() => {
  // The whole group: npm, the script and the gateway.
  for (const { pid, exitCode, signalCode } of running.splice(0)) {
    if (pid && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL')
  }
})

interface Started {
  readonly child: ChildProcess
  readonly port: number
  readonly text: string
}

/** `npm start` on free ports, until it has said what to paste. */
async function start(environment: Record<string, string> = {}): Promise<Started> {
  assertFreshBuild()
  const port = await freePort()
  const env = {
    ...process.env,
    HEADGATE_PORT: String(port),
    HEADGATE_ADMIN_PORT: String(await freePort()),
    ...environment,
  }
  const child = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  running.push(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (more: string) => {
      text += more
    })
  }
  while (!text.includes('The last one is answered 429')) {
    if (child.exitCode !== null) throw new Error(`npm start ended:\n${text}`)
    await sleep(50)
  }
  return { child, port, text }
}

const commandsIn = (text: string) => text.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.trim()] : []))

describe('npm start', () => {
  it('prints three commands that work as they stand, the last of which shows a 429', async () => {
    const { text } = await start()
    const commands = commandsIn(text)
    expect(commands).toHaveLength(3)
    const outputs = []
    for (const command of commands) outputs.push(await run(ROOT, 'sh', '-c', command))
    const [first, second, third] = outputs.map(({ output }) => output)
    expect(first).toMatch(/HTTP\/1\.1 200 OK/)
    expect(first).toMatch(/^ratelimit: .*"user";r=4/im)
    expect(second).toContain('hello')
    const statuses = [...(third ?? '').matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    expect(statuses).toEqual(['200', '200', '200', '200', '200', '429'])
    expect(third).toMatch(/^retry-after: \d+/im)
  })

  it('works on a machine without curl', async () => {
    const { port } = await start()
    const curl = 'examples/quickstart/curl.mjs'
    const url = `http://127.0.0.1:${port}/api/hello?call=[1-6]`
    const { output } = await run(ROOT, 'node', curl, '-i', '-H', 'x-user-id: ann', url)
    expect([...output.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      '200',
      '200',
      '200',
      '200',
      '200',
      '429',
    ])
  })

  it('counts in the Redis that HEADGATE_STORE names', async () => {
    const redis = await startRedis()
    try {
      const { port } = await start({ HEADGATE_STORE: redis.url })
      // On a busy machine the first answers may come too late for their deadline, and be decided without Redis.
      const callOnce = async () => {
        await fetch(`http://127.0.0.1:${port}/api/hello`, { headers: { 'x-user-id': 'ann' } })
        return redis.command('EXISTS', 'quickstart:hello:user:ann')
      }
      await expect.poll(callOnce, { timeout: 20_000 }).toContain('1')
    } finally {
      await redis.stop()
    }
  })

  it('stops everything on Ctrl-C', async () => {
    const { child, port } = await start()
    // A terminal sends it to the whole foreground group.
    process.kill(-(child.pid ?? 0), 'SIGINT')
    await once(child, 'exit')
    await expect(fetch(`http://127.0.0.1:${port}/api/hello`)).rejects.toThrow()
  })

  it('says which port is taken and how to choose another', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' ? String(address?.port) : ''
    const failed = start({ HEADGATE_PORT: port })
    await expect(failed).rejects.toThrow(
      `Port ${port} of 127.0.0.1 cannot be used (EADDRINUSE). Choose another: HEADGATE_PORT=`,
    )
    taken.close()
  })
})
