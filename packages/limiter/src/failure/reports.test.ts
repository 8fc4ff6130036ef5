import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type StoreErrorKind, StoreFault } from '../store.ts'
import { Reports } from './reports.ts'

const fault = (kind: StoreErrorKind, message: string = kind) => new StoreFault(kind, message, false)

describe('Reports', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  function rig() {
    const told: string[] = []
    return {
      told,
      reports: new Reports(({ kind, message }, decisions) => told.push(`${kind} ${message} ${decisions}`)),
    }
  }

  it('tells of the first fault at once, with all that it touched', async () => {
    const { told, reports } = rig()
    const cut = fault('connection', 'cut')
    for (let i = 0; i < 50; i++) reports.add(cut, 1)
    await vi.advanceTimersByTimeAsync(1)
    expect(told).toEqual(['connection cut 50'])
  })

  it('tells of each kind once a second, never once a request, and loses no count', async () => {
    const { told, reports } = rig()
    for (let i = 0; i < 5000; i++) {
      reports.add(fault('timeout'), 1)
      if (i % 5 === 0) reports.add(fault('full'), 1)
      await vi.advanceTimersByTimeAsync(1)
    }
    await vi.advanceTimersByTimeAsync(1000)
    expect(told.length).toBeLessThanOrEqual(2 * 6)
    const counted = (kind: string) =>
      told.filter((line) => line.startsWith(kind)).reduce((sum, line) => sum + Number(line.split(' ')[2]), 0)
    expect(counted('timeout')).toBe(5000)
    expect(counted('full')).toBe(1000)
  })

  it('tells what it holds when it closes, and leaves no timer', async () => {
    const { told, reports } = rig()
    reports.add(fault('timeout'), 1)
    await vi.advanceTimersByTimeAsync(1)
    reports.add(fault('timeout'), 2)
    reports.close()
    expect(told).toEqual(['timeout timeout 1', 'timeout timeout 2'])
    expect(vi.getTimerCount()).toBe(0)
  })
})
