import { afterAll } from 'vitest'

// Fast test files share a process. A timer that one of them leaves running, such as that of a store that it does
// not close, would set its next round on the fake timers of another.
const { setTimeout, setInterval } = globalThis
const begun = new Set<NodeJS.Timeout>()

function recorded<Begin extends (...args: never[]) => NodeJS.Timeout>(begin: Begin): Begin {
  const record = (...args: Parameters<Begin>) => {
    const timer = begin(...args)
    begun.add(timer)
    return timer
  }
  return Object.assign(record, begin) as Begin
}

globalThis.setTimeout = recorded(setTimeout)
globalThis.setInterval = recorded(setInterval)

afterAll(() => {
  Object.assign(globalThis, { setTimeout, setInterval })
  for (const timer of begun) clearTimeout(timer)
})
