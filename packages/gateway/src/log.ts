import { pino } from 'pino'

/** Where the gateway says what happens: one line for each change of state, never one for each request. */
export interface Logger {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** JSON lines on standard output. */
export function defaultLogger(): Logger {
  return pino({ name: 'headgate', base: null })
}
