import { connect, createServer, type Socket } from 'node:net'
import { trustSettings } from 'headgate/http'
import { afterEach, expect, it, vi } from 'vitest'
import { Connection } from './connection.ts'
import { Connections } from './connections.ts'

afterEach(() => {
  vi.useRealTimers()
})

async function pair(): Promise<{ server: Socket; client: Socket }> {
  const listening = createServer()
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const client = connect((listening.address() as { port: number }).port, '127.0.0.1')
  const server = await new Promise<Socket>((resolve) => listening.once('connection', resolve))
  listening.close()
  return { server, client }
}

it('closes a connection that nobody used for more than a minute, and none that waits for its answer', async () => {
  const [idle, busy] = [await pair(), await pair()]
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const connections = new Connections()
  const trust = trustSettings()
  for (const { server } of [idle, busy]) connections.add(server, trust)
  const waiting = Connection.of(busy.server) as Connection
  waiting.open = 1
  vi.advanceTimersByTime(60_000)
  expect(idle.server.destroyed).toBe(false)
  vi.advanceTimersByTime(20_000)
  expect(idle.server.destroyed).toBe(true)
  expect(busy.server.destroyed).toBe(false)
  waiting.answered()
  vi.advanceTimersByTime(80_000)
  expect(busy.server.destroyed).toBe(true)
  connections.close()
  for (const { client } of [idle, busy]) client.destroy()
})
