import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { assertFreshBuild } from '../fresh-build.ts'
import { freePort, startRedis } from '../redis.ts'
import { ROOT } from './copy.ts'
import { run } from './run.ts'

const running: ChildProcess[] = []
const servers: Server[] = []

afterEach(() => {
  // The whole group: npm, the script and the gateway.
  for (const { pid } of running.splice(0)) if (pid && isAnyoneIn(pid)) process.kill(-pid, 'SIGKILL')
  for (const server of servers.splice(0)) server.close()
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

async function takenPort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return String((server.address() as AddressInfo).port)
}

/** `A=1 B=2 npm start` → the variables. */
function variablesOf(command: string): Record<string, string> {
  return Object.fromEntries([...command.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]))
}

/** Whether a process of the group lives. */
function isAnyoneIn(group: number): boolean {
  try {
    return process.kill(-group, 0)
  } catch {
    return false
  }
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

  it.each([
    ['npm as a supervisor does', (child: ChildProcess) => child.kill('SIGTERM')],
    ['all of its group', ({ pid = 0 }: ChildProcess) => process.kill(-pid, 'SIGTERM')],
  ])('stops everything on a SIGTERM to %s', async (_whom, terminate) => {
    const { child, port } = await start()
    terminate(child)
    await expect
      .poll(() => fetch(`http://127.0.0.1:${port}/api/hello`).catch(() => 'gone'), { timeout: 5000 })
      .toBe('gone')
    await expect.poll(() => isAnyoneIn(child.pid ?? 0), { timeout: 5000 }).toBe(false)
  })

  it('says all ports that are taken, and one command that works', async () => {
    const [port, adminPort] = [await takenPort(), await takenPort()]
    const taken = { HEADGATE_PORT: port, HEADGATE_ADMIN_PORT: adminPort, HEADGATE_STORE: 'redis://127.0.0.1:1' }
    const text = await start(taken).then(
      () => '',
      (error) => String(error),
    )
    for (const each of [port, adminPort])
      expect(text).toContain(`Port ${each} of 127.0.0.1 cannot be used (EADDRINUSE)`)
    const [, command] = /^Choose others: (.*)$/m.exec(text) ?? []
    expect(command).toMatch(
      /^HEADGATE_PORT=\d+ HEADGATE_ADMIN_PORT=\d+ HEADGATE_STORE=redis:\/\/127\.0\.0\.1:1 npm start$/,
    )
    await start(variablesOf(command ?? ''))
  })

  it('keeps the port that is free, and prints no password', async () => {
    const [port, adminPort] = [await takenPort(), String(await freePort())]
    const taken = {
      HEADGATE_PORT: port,
      HEADGATE_ADMIN_PORT: adminPort,
      HEADGATE_STORE: 'redis://me:s3cret@127.0.0.1:1',
    }
    const text = await start(taken).then(
      () => '',
      (error) => String(error),
    )
    expect(text).toContain(`HEADGATE_ADMIN_PORT=${adminPort} npm start, with your HEADGATE_STORE`)
    expect(text).not.toContain('s3cret')
  })
})
