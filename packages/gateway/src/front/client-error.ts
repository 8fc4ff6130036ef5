import type { Socket } from 'node:net'
import type { ProblemStatus } from 'headgate/http'
import { rawAnswer } from './answers.ts'
import { Connection } from './connection.ts'

const ANSWERS: Record<string, [status: ProblemStatus, detail: string]> = {
  HPE_HEADER_OVERFLOW: [431, 'The header fields are too large.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
}

/**
 * Answers what is not HTTP: 400, then the connection closes, since nobody knows where the next request
 * would begin. Answers that are still due come first. A request whose own body breaks off in garbage
 * is given up with it.
 *
 * @returns whether it was answered as a request of its own
 */
export function onClientError(error: Error & { code?: string }, socket: Socket): boolean {
  const connection = Connection.of(socket)
  const { code = '' } = error
  // The parser fails again with each piece of what follows.
  if (connection?.closing && socket.writable) return false
  if (!connection || !socket.writable || !(code.startsWith('HPE_') || code in ANSWERS)) {
    socket.destroy(error)
    return false
  }
  // What follows a request that said it was the last: the connection ends with its answer anyway.
  if (code === 'HPE_CLOSED_CONNECTION') return false
  // Connected and never said a word: there is nothing to answer.
  if (socket.bytesRead === 0) {
    socket.destroy()
    return false
  }
  const [status, detail] = ANSWERS[code] ?? [400, `The request is not valid HTTP: ${reasonOf(error)}.`]
  const answer = rawAnswer(status, detail)
  const { last } = connection
  // What is behind whole requests, or a request whose turn did not come: nothing was done for it.
  if (last === undefined || last.req.complete || connection.dropLast()) {
    connection.endAfterAnswers(answer)
    return true
  }
  last.abandon()
  if (last.res.headersSent) socket.destroy()
  else connection.end(answer)
  return false
}

function reasonOf(error: Error & { reason?: string }): string {
  const reason = error.reason ?? error.message
  return /^[\x20-\x7e]+$/.test(reason) ? reason.replace(/[.\s]+$/, '') : 'it cannot be parsed'
}
