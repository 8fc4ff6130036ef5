// Who is measured beside Headgate: each starts listening on a port of loopback and gives its server.
// README.md says why each option is as it is.
import { createServer } from 'node:http'
import httpProxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import { createProxyServer } from 'httpxy'
import { Redis } from 'ioredis'
import { answer } from './answer.mjs'
import { bareProxy } from './bare-proxy.mjs'

async function fastify({ upstream, redisPort }, redisOptions) {
  const redis = new Redis({
    host: '127.0.0.1',
    port: redisPort,
    connectTimeout: 500,
    maxRetriesPerRequest: 1,
    ...redisOptions,
  })
  const app = Fastify()
  await app.register(rateLimit, {
    max: 10_000,
    timeWindow: '1 day',
    redis,
    keyGenerator: (request) => request.headers['x-user-id'],
  })
  await proxied(app, upstream)
  return app.server
}

async function proxied(app, upstream) {
  const undici = { connections: 128, pipelining: 1, keepAliveTimeout: 60_000 }
  await app.register(httpProxy, { upstream, undici })
  await app.listen({ host: '127.0.0.1', port: 0 })
}

function listening(server) {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

export const contenders = {
  'fastify, one limit': (way) => fastify(way),
  'fastify, one limit, pipelining': (way) => fastify(way, { enableAutoPipelining: true }),
  async 'fastify, no limit'({ upstream }) {
    const app = Fastify()
    await proxied(app, upstream)
    return app.server
  },
  'undici, no limit': ({ upstream }) => listening(createServer(bareProxy(upstream))),
  'httpxy, no limit'({ upstream }) {
    const proxy = createProxyServer({ target: upstream })
    return listening(createServer((req, res) => proxy.web(req, res)))
  },
  /** No proxy: the least that any can cost. */
  'node:http alone': () => listening(createServer(answer)),
}
