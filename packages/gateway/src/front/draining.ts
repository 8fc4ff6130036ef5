import type { Server } from 'node:http'
import { MAX_TIMER_MS } from '../timers.ts'

/** How often connections that have become idle are looked for. */
const SWEEP_MS = 50

/**
 * Stops accepting and lets the server's requests finish. What is not finished after `drainMs` is cut.
 * @param closeUnused closes connections that nobody uses; node's server takes one without a request yet for used
 * @returns whether everything finished by itself
 */
export function drainServer(
  server: Server,
  drainMs: number,
  closeUnused = () => server.closeIdleConnections(),
): Promise<boolean> {
  return new Promise((resolve) => {
    let finished = true
    const sweep = setInterval(closeUnused, SWEEP_MS)
    const cut = (): void => {
      finished = false
      server.closeAllConnections()
    }
    const deadline = setTimeout(cut, Math.min(drainMs, MAX_TIMER_MS))
    server.close(() => {
      clearInterval(sweep)
      clearTimeout(deadline)
      resolve(finished)
    })
    closeUnused()
  })
}
