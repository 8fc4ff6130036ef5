import type { Server } from 'node:http'

/** How often connections that have become idle are looked for. */
const SWEEP_MS = 50

/** A timer that is set to more goes off at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Stops accepting and lets the server's requests finish. What is not finished after `drainMs` is cut.
 * @returns whether everything finished by itself
 */
export function drainServer(server: Server, drainMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    let finished = true
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
    const deadline = setTimeout(
      () => {
        finished = false
        server.closeAllConnections()
      },
      Math.min(drainMs, MAX_TIMER_MS),
    )
    server.close(() => {
      clearInterval(sweep)
      clearTimeout(deadline)
      resolve(finished)
    })
    server.closeIdleConnections()
  })
}
