import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Connection, type Link, type LinkEvents } from './connection.ts'

/** A link that does what the test says. */
class ScriptedLink implements Link {
  readonly events: LinkEvents
  ends = 0
  readonly begunMs = performance.now()

  constructor(events: LinkEvents) {
    this.events = events
  }

  send = async (args: readonly string[]) => args
  async end(): Promise<void> {
    this.ends += 1
  }
}

function rig() {
  const links: ScriptedLink[] = []
  const log: string[] = []
  const prepares: { resolve(): void; reject(error: Error): void }[] = []
  const connection = new Connection(
    (events) => {
      const link = new ScriptedLink(events)
      links.push(link)
      return link
    },
    {
      prepare: () => new Promise<void>((resolve, reject) => prepares.push({ resolve, reject })),
      onReady: () => log.push('ready'),
      onDown: (error) => log.push(`down ${error?.message ?? ''}`.trim()),
    },
  )
  const link = (at: number) => links.at(at) as ScriptedLink
  const settle = () => vi.advanceTimersByTimeAsync(0)
  async function ready() {
    link(-1).events.onReady()
    prepares.at(-1)?.resolve()
    await settle()
  }
  return { connection, links, link, log, prepares, settle, ready }
}

describe('Connection', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is ready when a link is there and prepared', async () => {
    const { link, log, prepares, settle } = rig()
    link(0).events.onReady()
    await settle()
    expect(log).toEqual([])
    prepares[0]?.resolve()
    await settle()
    expect(log).toEqual(['ready'])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(log).toEqual(['ready'])
  })

  it('begins a new link after one that ended, and ends that one', async () => {
    const { links, link, log, ready } = rig()
    await ready()
    link(0).events.onEnd(new Error('cut'))
    expect(log).toEqual(['ready', 'down cut'])
    expect(link(0).ends).toBe(1)
    await vi.advanceTimersByTimeAsync(200)
    expect(links).toHaveLength(2)
    await ready()
    expect(log).toEqual(['ready', 'down cut', 'ready'])
  })

  it('hears a link once, and only the present one', async () => {
    const { links, link, log, prepares, settle, ready } = rig()
    // The first is ready, and fails while it is prepared; its preparation fails only when the second is there.
    link(0).events.onReady()
    await settle()
    link(0).events.onEnd(new Error('login refused'))
    link(0).events.onEnd(undefined)
    await vi.advanceTimersByTimeAsync(200)
    await ready()
    prepares[0]?.reject(new Error('of the first'))
    link(0).events.onReady()
    link(0).events.onEnd(new Error('late'))
    await vi.advanceTimersByTimeAsync(1000)
    expect(log).toEqual(['down login refused', 'ready'])
    expect(links).toHaveLength(2)
  })

  it('gives up a handshake that hangs, wherever it does', async () => {
    const { link, log, settle } = rig()
    await vi.advanceTimersByTimeAsync(1000)
    expect(log).toEqual(['down no connection within 1000 ms'])
    expect(link(0).ends).toBe(1)
    await vi.advanceTimersByTimeAsync(200)
    link(1).events.onReady()
    await settle()
    await vi.advanceTimersByTimeAsync(1000)
    expect(log).toHaveLength(2)
    expect(link(1).ends).toBe(1)
  })

  it('gives up a link whose preparation is refused: nothing else would end it', async () => {
    const { links, link, log, prepares, settle } = rig()
    link(0).events.onReady()
    prepares[0]?.reject(new Error('LOADING Redis is loading the dataset in memory'))
    await settle()
    expect(log).toEqual(['down LOADING Redis is loading the dataset in memory'])
    expect(link(0).ends).toBe(1)
    await vi.advanceTimersByTimeAsync(200)
    expect(links).toHaveLength(2)
  })

  it('pauses 200 ms at most, hardly less while links die young, and now and then gives one its time', async () => {
    const { links, link, ready } = rig()
    for (let i = 0; i < 40; i++) {
      if (i % 2 === 0) await ready()
      link(-1).events.onEnd(undefined)
      const before = links.length
      await vi.advanceTimersByTimeAsync(200)
      expect(links).toHaveLength(before + 1)
    }
    const pauses = links.slice(-20).map((each, i, of) => each.begunMs - (of[i - 1]?.begunMs ?? each.begunMs - 200))
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(100)

    const begun = links.length
    await vi.advanceTimersByTimeAsync(30_000)
    const lives = links.slice(begun).map((each, i, of) => (of[i + 1]?.begunMs ?? Number.NaN) - each.begunMs)
    expect(lives.some((ms) => ms > 6000)).toBe(true)
    expect(lives.filter((ms) => ms > 1300).length).toBeLessThanOrEqual(lives.length / 4)
  })

  it('begins without delay after a link that lasted', async () => {
    const { links, link, ready } = rig()
    await ready()
    await vi.advanceTimersByTimeAsync(5000)
    link(0).events.onEnd(undefined)
    await vi.advanceTimersByTimeAsync(25)
    expect(links).toHaveLength(2)
  })

  it('gives a link up when told to', async () => {
    const { connection, links, link, log, ready } = rig()
    await ready()
    connection.renew(new Error('no longer answers'))
    connection.renew(new Error('no longer answers'))
    expect(log).toEqual(['ready', 'down no longer answers'])
    expect(link(0).ends).toBe(1)
    await expect(connection.send(['PING'])).rejects.toThrow('the connection is gone')
    await vi.advanceTimersByTimeAsync(200)
    expect(links).toHaveLength(2)
  })

  it('leaves no timer and begins nothing once it is closed, in whatever state', async () => {
    for (const state of ['connecting', 'preparing', 'ready', 'pausing'] as const) {
      const { connection, links, link, log, settle, ready } = rig()
      if (state === 'preparing') link(0).events.onReady()
      if (state === 'ready') await ready()
      if (state === 'pausing') link(0).events.onEnd(undefined)
      await settle()
      const before = log.length
      await connection.close()
      expect(link(0).ends).toBe(1)
      expect(vi.getTimerCount()).toBe(0)
      link(0).events.onEnd(undefined)
      await vi.advanceTimersByTimeAsync(10_000)
      expect(links).toHaveLength(1)
      expect(log).toHaveLength(before)
    }
  })
})
