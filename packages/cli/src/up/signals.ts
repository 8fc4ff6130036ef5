import type { Logger } from '@headgate/gateway'

/** Why a process that serves is to stop. */
export interface Stop {
  /** A signal, or the kind of error. */
  readonly reason: string
  /** Whether an error made it stop. */
  readonly failed: boolean
}

/**
 * What a process that serves is told: SIGHUP to reload, SIGTERM and SIGINT to stop, once more to stop
 * at once. An error that nobody caught stops it too, in order: what state it left is not known, and
 * whoever started the process starts it again.
 */
export class Signals {
  readonly stopped: Promise<Stop>
  /** Until these are set, SIGHUP is no news and patience has no end. */
  onReload: () => void = () => undefined
  onImpatience: () => void = () => undefined
  #stopping = false

  /** Listens from now on: before that a signal would just end the process. */
  constructor(log: Logger) {
    process.on('SIGHUP', () => this.onReload())
    this.stopped = new Promise((resolve) => {
      const stop = (reason: string, failed: boolean) => {
        this.#stopping = true
        resolve({ reason, failed })
      }
      for (const signal of ['SIGTERM', 'SIGINT'] as const) {
        process.on(signal, () => (this.#stopping ? this.onImpatience() : stop(signal, false)))
      }
      for (const kind of ['uncaughtException', 'unhandledRejection'] as const) {
        process.on(kind, (error: unknown) => {
          log.error({ err: error }, `${kind}: a fault of Headgate's, please report it`)
          stop(kind, true)
        })
      }
    })
  }
}
