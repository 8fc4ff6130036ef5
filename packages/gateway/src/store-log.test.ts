import type { Engine, EngineEvents } from 'headgate'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { logStore } from './store-log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Listeners = { [E in keyof EngineEvents]?: (payload: EngineEvents[E]) => void }

function started() {
  const listeners: Listeners = {}
  const lines: string[] = []
  const log = (level: string) => (details: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(details)}`)
  const on: Engine['on'] = (event, listener) => {
    Object.assign(listeners, { [event]: listener })
    return () => void delete listeners[event]
  }
  const end = logStore({ on }, 'redis://h', { info: log('info'), warn: log('warn'), error: log('error') })
  const fault = (kind: string, count = 1) => listeners.error?.({ message: `a fault: ${kind}`, kind, count })
  const away = (kind: string) => listeners.degraded?.({ reason: `a fault: ${kind}`, kind })
  const back = (awayMs = 5000) => listeners.recovered?.({ awayMs })
  return { lines, end, fault, away, back }
}

describe('the log of the store', () => {
  it('has one line when it goes and one when it comes back, however often its cause is reported', () => {
    const { lines, fault, away, back } = started()
    fault('timeout', 9)
    vi.advanceTimersByTime(200)
    away('timeout')
    for (let second = 0; second < 5; second++) {
      fault('timeout', 51)
      vi.advanceTimersByTime(1000)
    }
    back()
    fault('timeout', 3)
    vi.advanceTimersByTime(10_000)
    expect(lines).toEqual([
      'warn store is away: rules decide without it {"store":"redis://h","reason":"a fault: timeout","kind":"timeout"}',
      'info store answers again {"store":"redis://h","awayMs":5000}',
    ])
  })

  it('tells another trouble while the store is away', () => {
    const { lines, fault, away } = started()
    away('connection')
    fault('auth')
    vi.advanceTimersByTime(1000)
    expect(lines[1]).toBe('warn a fault: auth {"store":"redis://h","kind":"auth","count":1}')
  })

  it('tells faults that did not make it go away, each, and again some time after it was', () => {
    const { lines, fault, away, back } = started()
    fault('timeout', 2)
    vi.advanceTimersByTime(999)
    expect(lines).toEqual([])
    fault('timeout', 3)
    vi.advanceTimersByTime(1000)
    away('timeout')
    back()
    vi.advanceTimersByTime(1000)
    fault('timeout', 4)
    vi.advanceTimersByTime(1000)
    const counts = lines.filter((line) => line.includes('fault') && line.includes('count'))
    expect(counts.map((line) => /"count":(\d)/.exec(line)?.[1])).toEqual(['2', '3', '4'])
  })

  it('tells what it holds when it ends, and leaves no timer', () => {
    const { lines, fault, away, back, end } = started()
    fault('full', 7)
    away('connection')
    back()
    end()
    expect(lines.at(-1)).toContain('"count":7')
    expect(vi.getTimerCount()).toBe(0)
  })
})
