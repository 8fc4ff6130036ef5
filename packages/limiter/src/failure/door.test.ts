import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { tokenBucket } from '../algorithms/token-bucket/index.ts'
import type { Decision, LibraryFailurePolicy } from '../decision.ts'
import { StoreUnavailableError } from '../errors.ts'
import { blank } from '../script/judging.ts'
import { type Check, type RemoteStore, StoreFault, type Ticket, type Verdict } from '../store.ts'
import { memoryStore } from '../stores/memory.ts'
import { Door } from './door.ts'
import { Policy } from './policy.ts'

const TIMEOUT_MS = 50
const ten = tokenBucket({ limit: 10, period: '1h' })

function check(onStoreFailure: LibraryFailurePolicy = 'local'): Check {
  return { parts: [{ name: 'a', limit: ten, space: 'a:', value: 'k', cost: 1, onStoreFailure }], peek: false }
}

/** A store that answers, is silent, or fails, as the test says. */
class ScriptedStore implements RemoteStore {
  readonly kind = 'remote'
  mode: 'answers' | 'silent' | StoreFault = 'answers'
  readonly tickets: Ticket[] = []

  submit(ticket: Ticket): void {
    this.tickets.push(ticket)
    if (this.mode === 'answers') answer(ticket)
    else if (this.mode !== 'silent') ticket.fail(this.mode)
  }

  async run(): Promise<Verdict> {
    if (this.mode !== 'answers') throw new StoreFault('timeout', 'still away', false)
    return verdict()
  }

  watch = () => () => undefined
  async close(): Promise<void> {}
}

function verdict(): Verdict {
  return { ...blank([0]), allowed: true, nowUs: Date.now() * 1000 }
}

function answer(ticket: Ticket | undefined): void {
  ticket?.answer(verdict())
}

function rig() {
  const store = new ScriptedStore()
  const events: string[] = []
  const local = memoryStore({ clock: () => Math.floor(performance.now() * 1000) + 1e15 })
  const door = new Door({
    store,
    policy: new Policy(local, 1),
    timeoutMs: TIMEOUT_MS,
    probe: check(),
    onDegraded: (fault) => events.push(`degraded ${fault.kind}`),
    onRecovered: () => events.push('recovered'),
    onFault: (fault, decisions) => events.push(`error ${fault.kind} ${decisions}`),
  })
  const decide = (onStoreFailure?: LibraryFailurePolicy, signal?: AbortSignal): Promise<Decision> =>
    door.decide(check(onStoreFailure), performance.now() + TIMEOUT_MS, signal)
  return { store, events, door, decide, local }
}

describe('Door', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('hands out what the store decides', async () => {
    const { decide, door, events } = rig()
    expect(await decide()).toMatchObject({ allowed: true, source: 'store', degraded: false })
    expect(door.degraded).toBe(false)
    expect(events).toEqual([])
    expect(vi.getTimerCount()).toBeLessThanOrEqual(1)
  })

  it('decides by the deadline, and after five that passed without waiting', async () => {
    const { store, door, decide, events } = rig()
    store.mode = 'silent'
    for (let i = 0; i < 5; i++) {
      const begunMs = performance.now()
      const decided = decide()
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 2)
      expect(await decided).toMatchObject({ allowed: true, source: 'local', degraded: true })
      expect(performance.now() - begunMs).toBeLessThanOrEqual(TIMEOUT_MS + 2)
    }
    expect(door.degraded).toBe(true)
    for (let i = 0; i < 100; i++) expect((await decide()).source).toBe('local')
    expect(store.tickets).toHaveLength(5)
    expect(events.filter((line) => line.startsWith('degraded'))).toEqual(['degraded timeout'])
  })

  it('says degraded and recovered once each time, and errors once a second, never once a request', async () => {
    const { store, door, decide, events } = rig()
    for (const outage of ['first', 'second']) {
      const fault = new StoreFault('connection', outage, true)
      store.mode = fault
      await Promise.all(Array.from({ length: 500 }, () => decide()))
      expect(door.degraded).toBe(true)
      await vi.advanceTimersByTimeAsync(2000)
      store.mode = 'answers'
      await vi.advanceTimersByTimeAsync(600)
      expect(door.degraded).toBe(false)
      expect((await decide()).source).toBe('store')
    }
    const once = ['degraded connection', 'error connection 1', 'recovered']
    expect(events).toEqual([...once, ...once])
  })

  it('counts a batch that failed as one failure, and tells how many it touched', async () => {
    const { store, door, decide, events } = rig()
    store.mode = 'silent'
    const waiting = Array.from({ length: 50 }, () => decide())
    const fault = new StoreFault('full', 'OOM command not allowed', true)
    for (const ticket of store.tickets) ticket.fail(fault)
    expect((await Promise.all(waiting)).every(({ source }) => source === 'local')).toBe(true)
    await vi.advanceTimersByTimeAsync(5)
    expect(door.degraded).toBe(false)
    expect(events).toEqual(['error full 50'])
  })

  it('takes the first of answer, fault and deadline; what comes later changes nothing', async () => {
    const { store, decide, events } = rig()
    store.mode = 'silent'
    const decided = decide()
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 2)
    expect((await decided).source).toBe('local')
    const before = events.length
    answer(store.tickets[0])
    store.tickets[0]?.fail(new StoreFault('other', 'late', false))
    await vi.advanceTimersByTimeAsync(0)
    expect(events).toHaveLength(before)
    expect(store.tickets[0]?.settled).toBe(true)
  })

  it('does not count what a busy process could not hear against the store', async () => {
    vi.useRealTimers()
    const { store, door, decide, events } = rig()
    store.mode = 'silent'
    for (let i = 0; i < 8; i++) {
      const decided = decide()
      const ticket = store.tickets.at(-1)
      // What an answer that already lies in the socket does: it is read after the timers ran.
      if (i % 2 === 0) setImmediate(() => answer(ticket))
      const endMs = performance.now() + TIMEOUT_MS + 30
      while (performance.now() < endMs);
      expect((await decided).source).toBe(i % 2 === 0 ? 'store' : 'local')
    }
    expect(door.degraded).toBe(false)
    expect(events).toEqual([])
    door.close()
  })

  describe('a signal', () => {
    it('ends a decision that waits with its reason, and the check is not sent any more', async () => {
      const { store, decide, door, events } = rig()
      store.mode = 'silent'
      const abort = new AbortController()
      const decided = decide('local', abort.signal)
      abort.abort(new Error('the caller left'))
      await expect(decided).rejects.toThrow('the caller left')
      expect(store.tickets[0]?.settled).toBe(true)
      answer(store.tickets[0])
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 2)
      expect(events).toEqual([])
      expect(door.degraded).toBe(false)
      expect(vi.getTimerCount()).toBe(0)
    })

    it('keeps no listener once the decision is there, however it came', async () => {
      const { store, decide } = rig()
      const { signal } = new AbortController()
      await decide('local', signal)
      store.mode = new StoreFault('other', 'refused', true)
      await decide('local', signal)
      await expect(decide('throw', signal)).rejects.toThrow(StoreUnavailableError)
      store.mode = 'silent'
      const decided = decide('local', signal)
      expect(getEventListeners(signal, 'abort')).toHaveLength(1)
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 2)
      await decided
      expect(getEventListeners(signal, 'abort')).toEqual([])
    })
  })

  it('decides by its policies what still waits when it closes, and leaves no timer', async () => {
    const { store, door, decide, events, local: shares } = rig()
    store.mode = 'silent'
    const { signal } = new AbortController()
    const local = decide('local', signal)
    const closed = decide('closed')
    const thrown = decide('throw')
    thrown.catch(() => undefined)
    door.close()
    expect(await local).toMatchObject({ allowed: true, source: 'local', degraded: true })
    expect(await closed).toMatchObject({ allowed: false, reason: 'store' })
    await expect(thrown).rejects.toThrow(StoreUnavailableError)
    for (const ticket of store.tickets) answer(ticket)
    await shares.close()
    await vi.advanceTimersByTimeAsync(5000)
    expect(events).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('gives no new budget each time the store goes and comes (law)', async () => {
    const turn = fc.record({ up: fc.boolean(), calls: fc.nat(30), ms: fc.integer({ min: 1, max: 1500 }) })
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { maxLength: 30 }), async (turns) => {
        const { store, door, decide, local: shares } = rig()
        const startMs = performance.now()
        let local = 0
        for (const { up, calls, ms } of turns) {
          store.mode = up ? 'answers' : new StoreFault('connection', 'refused', true)
          for (let i = 0; i < calls; i++) {
            const decision = await decide()
            if (decision.allowed && decision.source === 'local') local += 1
          }
          await vi.advanceTimersByTimeAsync(ms)
        }
        expect(local).toBeLessThanOrEqual(10 + ((performance.now() - startMs) * 10) / 3_600_000)
        door.close()
        await shares.close()
      }),
      { numRuns: 30 },
    )
  })
})
