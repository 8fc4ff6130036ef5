/**
 * What the store needs of a Redis client: one connection of its own, made from the user's client, that
 * never sends a command twice, never queues while it is away, and gives up on nothing by itself.
 */
export interface Connection {
  /** Sends a command at once. Rejects when it cannot be written, or when the connection ends first. */
  send(args: readonly string[]): Promise<unknown>
  /** Gives this connection up and makes a new one: it no longer answers. */
  reconnect(): void
  close(): Promise<void>
}

export interface ConnectionEvents {
  /** The connection is there, and whoever has to log in has. */
  onReady(): void
  /** It is gone, or could not be made; a new attempt follows by itself. */
  onDown(error: Error | undefined): void
}

/** How long after the nth failed attempt the next one begins, in ms. */
export function reconnectDelayMs(attempt: number): number {
  return Math.min(25 * 2 ** Math.min(attempt, 4), 200)
}

/** How long an attempt to connect may take, in ms. */
export const CONNECT_TIMEOUT_MS = 2000
