import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine, fixedWindow } from 'headgate'
import { redisStore } from 'headgate/redis'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../../test/load.ts'
import { freePort, startRedis } from '../../../../../test/redis.ts'
import { CLIENTS, IOVALKEY } from '../../../../../test/redis-clients.ts'
import { startProxy } from '../../../../../test/tcp-proxy.ts'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const WINDOW = fixedWindow({ limit: 100, period: '1h' })
const item = (key: string) => ({ rule: 'r', name: 'l', limit: WINDOW, key })

/** Sockets and timers of this process, how many of each. */
function resources(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** What is there now and was not there before. */
function added(before: Map<string, number>): string[] {
  return [...resources()].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name)
}

async function server(...args: string[]) {
  const redis = await startRedis(args)
  ends.push(() => redis.stop())
  return redis
}

/** A port where connections are never made nor refused: the stopped server's queue is full, and SYNs are lost. */
async function blackHole() {
  const redis = await server('--tcp-backlog', '1')
  redis.pause()
  const fillers = Array.from({ length: 4 }, () => connect(redis.port, '127.0.0.1').on('error', () => undefined))
  ends.push(() => {
    for (const filler of fillers) filler.destroy()
  })
  await sleep(200)
  return { redis, url: redis.url, free: () => fillers.map((filler) => filler.destroy()) }
}

describe.each([...CLIENTS, IOVALKEY])('A store on $name', ({ make }) => {
  it("does not touch the user's client", async () => {
    const redis = await server()
    const client = make(redis.url)
    const emitter = client as unknown as NodeJS.EventEmitter
    const listeners = () => emitter.eventNames().map((name) => [name, emitter.listenerCount(name)])
    const before = listeners()
    const store = redisStore(client)
    const engine = createEngine({ store, timeoutMs: 1000 })
    expect((await engine.check([item('k')])).source).toBe('store')
    expect(listeners()).toEqual(before)
    if ('isOpen' in client) expect(client.isOpen).toBe(false)
    else if ('status' in client) expect(client.status).toBe('wait')
    await engine.close()
    await store.close()
    expect(listeners()).toEqual(before)
  })

  const states = ['connected', 'refused', 'lost on the way', 'without an answer to its handshake', 'just made'] as const

  it.each(states)('leaves no socket, timer or listener behind when it is closed %s', async (state) => {
    const url =
      state === 'refused'
        ? `redis://127.0.0.1:${await freePort()}`
        : state === 'lost on the way'
          ? (await blackHole()).url
          : state === 'without an answer to its handshake'
            ? `redis://127.0.0.1:${await startDeafServer()}`
            : (await server()).url
    // What the preparations leave is gone by then.
    await sleep(100)
    const before = resources()
    const store = redisStore(make(url))
    const engine = createEngine({ store, timeoutMs: 200 })
    if (state !== 'just made') {
      const decided = await engine.check([item('k')])
      expect(decided.source).toBe(state === 'connected' ? 'store' : 'local')
    }
    await engine.close()
    const begunMs = performance.now()
    await store.close()
    await store.close()
    expect(performance.now() - begunMs).toBeLessThan(500)
    let left = added(before)
    for (let i = 0; i < 100 && left.length > 0; i++) {
      await sleep(10)
      left = added(before)
    }
    expect(left).toEqual([])
  })

  it('ends decisions that wait when engine and store are closed', async () => {
    const redis = await server()
    const store = redisStore(make(redis.url))
    const engine = createEngine({ store, timeoutMs: 5000 })
    expect((await engine.check([item('k')])).source).toBe('store')
    redis.pause()
    const waiting = [engine.check([item('k')]), engine.check([{ ...item('k'), onStoreFailure: 'closed' }])]
    await sleep(50)
    const begunMs = performance.now()
    await engine.close()
    await store.close()
    const [local, closed] = await Promise.all(waiting)
    expect(performance.now() - begunMs).toBeLessThan(1000)
    expect(local).toMatchObject({ allowed: true, source: 'local', degraded: true })
    expect(closed).toMatchObject({ allowed: false, reason: 'store' })
    await expect(engine.check([item('k')])).rejects.toMatchObject({ code: 'HEADGATE_CLOSED' })
    redis.resume()
  })

  it('fails what is on its way when its connection is replaced, and never holds more than one', async () => {
    const redis = await server()
    const proxy = await startProxy(redis.port)
    ends.push(() => proxy.close())
    const store = redisStore(make(`redis://127.0.0.1:${proxy.port}`))
    const engine = createEngine({ store, timeoutMs: 20_000, denyCache: false })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const connections = async () =>
      (await redis.command('CLIENT', 'LIST'))
        .split('\n')
        .filter((line) => line.includes('cmd=') && !line.includes('cmd=client|list')).length
    for (let i = 0; i < 20; i++) {
      expect((await engine.check([item(`k${i}`)])).source).toBe('store')
      proxy.drop()
      const waiting = Array.from({ length: 10 }, () => engine.check([item(`k${i}`)]))
      await sleep(10)
      proxy.restore()
      const decided = await Promise.all(waiting)
      expect(decided.every(({ source }) => source === 'local')).toBe(true)
      await until('the store', async () => (await engine.check([item('back')])).source === 'store')
    }
    await until('one connection', async () => (await connections()) === 1, 2000)
  })

  it.each([
    ['under load', 10],
    ['with a call now and then', 400],
  ])('leaves a connection that a router forgot, %s', async (_, everyMs) => {
    const redis = await server()
    const proxy = await startProxy(redis.port)
    ends.push(() => proxy.close())
    const store = redisStore(make(`redis://127.0.0.1:${proxy.port}`))
    const engine = createEngine({ store, timeoutMs: 100 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    const ask = async () => (await engine.check([item('k')])).source
    await until('the store', async () => (await ask()) === 'store')
    proxy.forget()
    expect(await ask()).toBe('local')
    const begunMs = performance.now()
    await until('the store', async () => {
      await sleep(everyMs)
      return (await ask()) === 'store'
    })
    expect(performance.now() - begunMs).toBeLessThan(4000)
  })

  it('gives up an attempt that was lost on its way', async () => {
    const { redis, url, free } = await blackHole()
    const store = redisStore(make(url))
    const engine = createEngine({ store, timeoutMs: 50 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    for (let i = 0; i < 60; i++) {
      expect((await engine.check([item('k')])).source).toBe('local')
      await sleep(50)
    }
    free()
    redis.resume()
    await until('the store', async () => (await engine.check([item('k')])).source === 'store', 5000)
  })

  it('resets by its deadline, also as the first thing that it does', async () => {
    const redis = await server()
    await redis.command('SET', 'rate_limit:r:l:k', 'x')
    const store = redisStore(make(redis.url))
    const engine = createEngine({ store, timeoutMs: 2000 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    await engine.reset([item('k')])
    expect(await redis.command('EXISTS', 'rate_limit:r:l:k')).toBe(':0')

    redis.pause()
    const late = createEngine({ store, timeoutMs: 100 })
    ends.push(() => late.close())
    const begunMs = performance.now()
    await expect(late.reset([item('k')])).rejects.toMatchObject({ code: 'HEADGATE_STORE_UNAVAILABLE' })
    expect(performance.now() - begunMs).toBeLessThan(1000)
    redis.resume()
    await redis.kill()
    await until('a store that is away', async () => (await late.check([item('k')])).source === 'local')
    await expect(late.reset([item('k')])).rejects.toMatchObject({ code: 'HEADGATE_STORE_UNAVAILABLE' })
  })

  it('counts in the database of its client, and nowhere else', async () => {
    const redis = await server()
    const store = redisStore(make(`${redis.url}/3`))
    const engine = createEngine({ store, timeoutMs: 1000 })
    ends.push(
      () => store.close(),
      () => engine.close(),
    )
    expect((await engine.check([item('k')])).source).toBe('store')
    expect(await redis.command('EVAL', "redis.call('SELECT', 3) return redis.call('DBSIZE')", '0')).toBe(':1')
    expect(await redis.command('DBSIZE')).toBe(':0')
  })
})

/** Takes connections and never says a thing, in a process of its own. */
async function startDeafServer(): Promise<number> {
  const text = `require('node:net').createServer((socket) => socket.on('error', () => {}).resume())
    .listen(0, '127.0.0.1', function () { console.log(this.address().port) })`
  const child = spawn(process.execPath, ['-e', text], { stdio: ['ignore', 'pipe', 'ignore'] })
  ends.push(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return Number(line)
}
