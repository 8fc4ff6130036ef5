import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Deadlines, type Due } from './deadlines.ts'

class Wait implements Due {
  readonly deadlineMs: number
  previous: Due | undefined = undefined
  next: Due | undefined = undefined

  constructor(deadlineMs: number) {
    this.deadlineMs = deadlineMs
  }
}

/** Keeps the process busy, as a long request would. */
function block(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

describe('Deadlines', () => {
  it('keeps one timer however many wait, and none when nobody does', async () => {
    const before = timers()
    const ends: Wait[] = []
    const deadlines = new Deadlines<Wait>((due) => ends.push(...due))
    const waits = Array.from({ length: 10_000 }, () => new Wait(performance.now() + 20))
    for (const wait of waits) deadlines.add(wait)
    expect(timers() - before).toBeLessThanOrEqual(1)
    await expect.poll(() => ends.length).toBe(10_000)
    expect(ends).toEqual(waits)
    await expect.poll(timers).toBe(before)
  })

  it('forgets what was removed, wherever it stood', async () => {
    const ends: Wait[] = []
    const deadlines = new Deadlines<Wait>((due) => ends.push(...due))
    const waits = Array.from({ length: 6 }, () => new Wait(performance.now() + 5))
    for (const wait of waits) deadlines.add(wait)
    for (const at of [0, 3, 5]) deadlines.remove(waits[at] as Wait)
    await expect.poll(() => ends.length).toBe(3)
    expect(ends).toEqual([waits[1], waits[2], waits[4]])
  })

  it('gives what already lies in the process a turn, and says that the process was late', async () => {
    const ends: { due: Wait[]; late: boolean }[] = []
    const deadlines = new Deadlines<Wait>((due, late) => ends.push({ due, late }))
    const answered = new Wait(performance.now() + 5)
    const unanswered = new Wait(performance.now() + 5)
    deadlines.add(answered)
    deadlines.add(unanswered)
    setImmediate(() => deadlines.remove(answered))
    block(50)
    await expect.poll(() => ends.length).toBe(1)
    expect(ends[0]).toEqual({ due: [unanswered], late: true })
  })

  it('does not blame the process for a timer that fires in time', async () => {
    // On a clock of the test's: a busy machine would be blamed, and rightly.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const lates: boolean[] = []
    const deadlines = new Deadlines<Wait>((_, late) => lates.push(late))
    // Timers have whole milliseconds: this one fires 0.8 ms behind.
    deadlines.add(new Wait(performance.now() + 4.2))
    await vi.advanceTimersByTimeAsync(10)
    expect(lates).toEqual([false])
  })

  it('hands back what waits when it closes, and leaves no timer', () => {
    const before = timers()
    const deadlines = new Deadlines<Wait>(() => undefined)
    const waits = [new Wait(performance.now() + 50), new Wait(performance.now() + 60)]
    for (const wait of waits) deadlines.add(wait)
    expect(deadlines.close()).toEqual(waits)
    expect(deadlines.close()).toEqual([])
    expect(timers()).toBe(before)
  })
})
