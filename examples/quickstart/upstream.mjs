// A stand-in for the service behind the gateway: it answers every request and says what reached it.
import { createServer } from 'node:http'

/** Listens on a port of 127.0.0.1; 0 takes a free one. */
export function startUpstream(port) {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(`${JSON.stringify({ hello: request.headers['x-user-id'] ?? 'stranger', path: request.url })}\n`)
  })
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
