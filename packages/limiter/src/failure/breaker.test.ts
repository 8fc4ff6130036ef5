import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreFault } from '../store.ts'
import { Breaker } from './breaker.ts'

const fault = () => new StoreFault('timeout', 'no answer', false)

/** A breaker whose probes end when the test says so. */
function rig(threshold = 5) {
  const log: string[] = []
  const probes: { resolve(): void; reject(error: Error): void }[] = []
  const rigged = {
    log,
    probes,
    startedMs: [] as number[],
    breaker: new Breaker({
      threshold,
      firstProbeMs: 50,
      lastProbeMs: 500,
      probe: () => {
        rigged.startedMs.push(performance.now())
        return new Promise<void>((resolve, reject) => probes.push({ resolve, reject }))
      },
      onOpen: (reason) => log.push(`open ${reason.message}`),
      onClose: (awayMs) => log.push(`close ${awayMs}`),
    }),
  }
  return rigged
}

describe('Breaker', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('opens after consecutive failures, once, and says which one it was', () => {
    const { breaker, log } = rig(3)
    breaker.failure(fault(), false)
    breaker.failure(fault(), false)
    breaker.success()
    breaker.failure(fault(), false)
    breaker.failure(fault(), false)
    expect(breaker.reason).toBeUndefined()
    const last = fault()
    breaker.failure(last, false)
    breaker.failure(fault(), false)
    expect(breaker.reason).toBe(last)
    expect(log).toEqual(['open no answer'])
  })

  it('counts what failed together as one failure', () => {
    const { breaker } = rig(2)
    const together = fault()
    for (let i = 0; i < 50; i++) breaker.failure(together, false)
    expect(breaker.reason).toBeUndefined()
  })

  it('opens at once where no further failure is needed', () => {
    const { breaker } = rig()
    breaker.failure(fault(), true)
    expect(breaker.reason).toBeDefined()
  })

  it('waits twice as long after each probe that fails, half a second at most', async () => {
    const { breaker, probes, startedMs } = rig(1)
    breaker.failure(fault(), false)
    const openedMs = performance.now()
    for (let i = 0; i < 7; i++) {
      await vi.advanceTimersToNextTimerAsync()
      probes[i]?.reject(new Error('still away'))
      await vi.advanceTimersByTimeAsync(0)
    }
    const waits = startedMs.map((ms, i) => ms - (startedMs[i - 1] ?? openedMs))
    expect(waits).toEqual([50, 100, 200, 400, 500, 500, 500])
  })

  it('closes with the first probe that is answered, and begins anew with short waits', async () => {
    const { breaker, probes, log, startedMs } = rig(1)
    breaker.failure(fault(), false)
    await vi.advanceTimersByTimeAsync(50)
    probes[0]?.reject(new Error('still away'))
    await vi.advanceTimersByTimeAsync(100)
    probes[1]?.resolve()
    await vi.advanceTimersByTimeAsync(0)
    expect(breaker.reason).toBeUndefined()
    expect(log).toEqual(['open no answer', 'close 150'])

    breaker.failure(fault(), false)
    const reopenedMs = performance.now()
    await vi.advanceTimersByTimeAsync(50)
    expect(startedMs[2]).toBe(reopenedMs + 50)
  })

  it('leaves no timer behind and says nothing more once it is closed', async () => {
    const { breaker, probes, log } = rig(1)
    breaker.failure(fault(), false)
    await vi.advanceTimersByTimeAsync(50)
    breaker.close()
    probes[0]?.resolve()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(log).toEqual(['open no answer'])
    expect(vi.getTimerCount()).toBe(0)
    expect(probes).toHaveLength(1)
  })

  const step = fc.oneof(
    fc.record({ do: fc.constant('failure' as const), decisive: fc.boolean(), same: fc.boolean() }),
    fc.record({ do: fc.constant('success' as const) }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 700 }) }),
    fc.record({ do: fc.constant('probe' as const), ok: fc.boolean() }),
  )

  it('has one probe at a time, at most half a second apart, and opens and closes in turn (law)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const { breaker, probes, log, startedMs } = rig(3)
        let ended = 0
        let last = fault()
        for (const each of steps) {
          if (each.do === 'failure') {
            if (!each.same) last = fault()
            breaker.failure(last, each.decisive)
          } else if (each.do === 'success') breaker.success()
          else if (each.do === 'wait') await vi.advanceTimersByTimeAsync(each.ms)
          else if (ended < probes.length) {
            const endedMs = performance.now()
            const probe = probes[ended++]
            if (each.ok) probe?.resolve()
            else probe?.reject(new Error('still away'))
            await vi.advanceTimersByTimeAsync(0)
            if (each.ok) continue
            await vi.advanceTimersByTimeAsync(500)
            expect(startedMs.length).toBeGreaterThan(ended - 1)
            expect((startedMs.at(-1) as number) - endedMs).toBeLessThanOrEqual(500)
          }
          expect(probes.length - ended).toBeLessThanOrEqual(1)
          expect(breaker.reason !== undefined).toBe(log.length % 2 === 1)
        }
        expect(log.every((line, i) => line.startsWith(i % 2 === 0 ? 'open' : 'close'))).toBe(true)
        breaker.close()
      }),
      { numRuns: 200 },
    )
  })
})
