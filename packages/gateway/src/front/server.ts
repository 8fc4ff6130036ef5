import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ALLOW, rawAnswer } from './answers.ts'
import { onClientError } from './client-error.ts'
import { Connection } from './connection.ts'
import { Exchange } from './exchange.ts'
import type { Front } from './front.ts'

/** How long a request's head may take to arrive. */
const HEAD_MS = 60_000

/**
 * The server that clients talk to. Node's strict parser refuses what two servers could read in two
 * ways: lengths given twice, codings other than chunked, folded lines, lines that end in a bare LF.
 */
export function frontServer(front: Front, overUnix: boolean): Server {
  const server = createServer({
    // See Connections.
    keepAliveTimeout: 0,
    headersTimeout: HEAD_MS,
    // An upload may take any time, as long as it does not stop: see RequestBody.
    requestTimeout: 0,
    // A missing Host is answered in our own words.
    requireHostHeader: false,
    insecureHTTPParser: false,
  })
  // The size of a head is limited, not the number of its fields: node would drop what is above it.
  server.maxHeadersCount = 0
  server.on('connection', (socket) => {
    // A peer that is gone already has no address any more, and must not pass as one on a unix socket.
    if (!overUnix && socket.remoteAddress === undefined) socket.destroy()
    else front.connections.add(socket, front.trust)
  })
  const take = (req: IncomingMessage, res: ServerResponse, unexpected = false): void => {
    const connection = Connection.of(req.socket)
    if (connection && !connection.closing) connection.take(new Exchange(front, connection, req, res, unexpected))
  }
  server.on('request', (req, res) => take(req, res))
  // The client waits with its body for our word, which is given when the upstream wants the body.
  server.on('checkContinue', (req, res) => take(req, res))
  server.on('checkExpectation', (req, res) => take(req, res, true))
  server.on('connect', (req: IncomingMessage, socket: Socket) => {
    const connection = Connection.of(socket)
    // The server gave the socket up: it no longer tells the answers before this that the client can take more.
    socket.on('drain', () => connection?.current?.res.emit('drain'))
    if (!connection || connection.closing) return
    front.metrics.request('error')
    connection.endAfterAnswers(rawAnswer(405, `${req.method} requests are not forwarded.`, [ALLOW]))
  })
  server.on('timeout', (socket: Socket) => {
    const connection = Connection.of(socket)
    if (connection) connection.timedOut()
    else socket.destroy()
  })
  server.on('clientError', (error: Error, socket: Socket) => {
    if (onClientError(error, socket)) front.metrics.request('error')
  })
  return server
}
