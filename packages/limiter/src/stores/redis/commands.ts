import type { Link, LinkEvents } from './connection.ts'

/**
 * Any other client: how to send it a command. Its connection is the caller's, with what its client does about
 * lost connections: one that sends a command twice charges twice.
 */
export interface RedisCommands {
  /**
   * Sends one command, with its arguments as they are, to the server that counts, and answers what it says: integers
   * as numbers, texts as strings, arrays as arrays. Rejects with what the server refused, in the server's words
   * (`NOSCRIPT No matching script…`), or with an error of the connection.
   */
  send(args: readonly string[]): Promise<unknown>
}

export function isCommands(client: object): client is RedisCommands {
  return 'send' in client && typeof client.send === 'function'
}

/** A link over a connection that is not ours: ending it forgets whoever waits, and closes nothing. */
export function openCommands(commands: RedisCommands, events: LinkEvents): Link {
  const waiting = new Set<(error: Error) => void>()
  queueMicrotask(() => events.onReady())
  return {
    send: (args) =>
      new Promise((resolve, reject) => {
        waiting.add(reject)
        new Promise((answer) => answer(commands.send(args))).then(resolve, reject).finally(() => waiting.delete(reject))
      }),
    async end() {
      for (const reject of waiting) reject(new Error('the connection was given up'))
      waiting.clear()
    },
  }
}
