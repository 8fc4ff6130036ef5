import type { Engine } from 'headgate'
import type { Logger } from './log.ts'

/** How far from a transition a fault may be told and still belong to it: faults are reported once a second, in ms. */
const TRANSITION_MS = 1000

/**
 * Says when the store goes away and when it is back: one line each, whatever number of decisions it
 * touched. Faults of the same kind around it are the same news, and stay in the metrics; all others are
 * told, after a moment in which it may turn out that the store is away.
 * @returns tells what is held, and ends
 */
export function logStore(engine: Pick<Engine, 'on'>, store: string, log: Logger): () => void {
  const held = new Map<string, { readonly timer: NodeJS.Timeout; readonly tell: () => void }>()
  let away: string | undefined
  let forget: NodeJS.Timeout | undefined

  const offs = [
    engine.on('degraded', ({ reason, kind }) => {
      clearTimeout(forget)
      away = kind
      drop(kind)
      log.warn({ store, reason, kind }, 'store is away: rules decide without it')
    }),
    engine.on('recovered', ({ awayMs }) => {
      forget = setTimeout(() => {
        away = undefined
      }, TRANSITION_MS).unref()
      log.info({ store, awayMs: Math.round(awayMs) }, 'store answers again')
    }),
    engine.on('error', ({ message, kind, count }) => {
      if (kind === away) return
      held.get(kind)?.tell()
      const tell = () => {
        drop(kind)
        log.warn({ store, kind, count }, message)
      }
      held.set(kind, { tell, timer: setTimeout(tell, TRANSITION_MS).unref() })
    }),
  ]

  function drop(kind: string): void {
    clearTimeout(held.get(kind)?.timer)
    held.delete(kind)
  }

  return () => {
    clearTimeout(forget)
    for (const { tell } of [...held.values()]) tell()
    for (const off of offs) off()
  }
}
