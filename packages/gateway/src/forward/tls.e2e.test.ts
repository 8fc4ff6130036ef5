import { createServer } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { afterEach, expect, it, onTestFinished } from 'vitest'
import { CERTIFICATE, KEY } from '../test-support/certificate.ts'
import { TestGateway } from '../test-support/gateway.ts'
import { ask, get } from '../test-support/raw-connection.ts'

afterEach(() => {
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
})

/** Answers with the name that it was asked for in the handshake. */
async function secureUpstream(): Promise<number> {
  const server = createServer({ key: KEY, cert: CERTIFICATE }, (req, res) => {
    res.end(`${(req.socket as TLSSocket & { servername: string | false }).servername} ${req.headers.host}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as { port: number }).port
}

it('asks an upstream with TLS for its own certificate, whatever host the client asked for', async () => {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  const port = await secureUpstream()
  const named = await TestGateway.start({ upstreams: [`https://localhost:${port}`] })
  for (let i = 0; i < 2; i++) {
    expect((await ask(named.address, get('/'))).body.toString()).toBe('localhost shop.example')
  }
  const numbered = await TestGateway.start({ upstreams: [`https://127.0.0.1:${port}`] })
  for (const host of ['a.example', 'b.example']) {
    const answer = await ask(numbered.address, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    expect(answer.body.toString()).toBe(`false ${host}`)
  }
})

it('does not talk to an upstream whose certificate nobody vouches for', async () => {
  const port = await secureUpstream()
  const gateway = await TestGateway.start({ upstreams: [`https://localhost:${port}`] })
  expect((await ask(gateway.address, get('/'))).status).toBe(502)
  expect(gateway.lines.find(({ message }) => message === 'upstream fails')?.details).toMatchObject({
    reason: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
})
