import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { formatListen, isLoopback, type ListenAddress } from '@headgate/rules'
import { HeadgateError } from 'headgate'
import { type Field, PROBLEM_TYPE, type ProblemStatus, problem } from 'headgate/http'
import { drainServer } from '../front/draining.ts'
import { listen } from '../listen.ts'
import type { Logger } from '../log.ts'
import { Access, type AccessOptions } from './access.ts'
import { type AdminSources, adminRoutes, type Page, type Route } from './pages.ts'

export type { AdminSources, Readiness } from './pages.ts'

/** The `admin` section of a rule file. */
export interface AdminOptions extends AccessOptions {
  readonly listen: ListenAddress
}

export interface RunningAdmin {
  /** `http://host:port`, or `unix:path`. */
  readonly address: string
  /** Finishes what is under way, at most for a second. */
  close(): Promise<void>
}

/** Scrapes are short; nobody may hold a shutdown up for longer, in ms. */
const CLOSE_MS = 1000

/**
 * Serves `/healthz`, `/readyz` and `/metrics`.
 * @throws HeadgateError HEADGATE_LISTEN where the address cannot be listened on, or where it is not
 *   loopback and no token is set
 */
export async function startAdmin(
  options: AdminOptions,
  sources: AdminSources,
  log: Pick<Logger, 'error'>,
): Promise<RunningAdmin> {
  refuseOpenAddress(options)
  const desk = new Desk(new Access(options), adminRoutes(sources), log)
  const server = createServer((req, res) => void desk.answer(req, res))
  const address = await listen(server, options.listen, 'admin')
  return { address, close: () => close(server) }
}

function refuseOpenAddress({ listen: address, token }: AdminOptions): void {
  if (token || isLoopback(address)) return
  throw new HeadgateError(
    'HEADGATE_LISTEN',
    `admin.listen: ${formatListen(address)} can be reached from other machines; set admin.token, or listen on 127.0.0.1`,
  )
}

async function close(server: Server): Promise<void> {
  await drainServer(server, CLOSE_MS)
}

/** Answers requests to the admin address. */
class Desk {
  readonly #access: Access
  readonly #routes: ReadonlyMap<string, Route>
  readonly #log: Pick<Logger, 'error'>

  constructor(access: Access, routes: ReadonlyMap<string, Route>, log: Pick<Logger, 'error'>) {
    this.#access = access
    this.#routes = routes
    this.#log = log
  }

  async answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    try {
      await this.#serve(req, res)
    } catch (error) {
      this.#log.error({ err: error, path: req.url }, 'an admin page failed')
      refuse(req, res, 500, 'This page failed; the log says why.')
    }
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { host, authorization } = req.headers
    if (!this.#access.isKnownHost(host)) {
      return refuse(req, res, 403, `The host ${JSON.stringify(host ?? '')} is not in admin.hosts.`)
    }
    const route = this.#routes.get((req.url as string).replace(/\?.*$/s, ''))
    if (!route) return refuse(req, res, 404, `There is ${[...this.#routes.keys()].join(', ')}.`)
    const method = req.method === 'HEAD' ? 'GET' : (req.method as string)
    const page = Object.hasOwn(route.methods, method) ? route.methods[method] : undefined
    if (!page) {
      const allowed = Object.keys(route.methods).flatMap((known) => (known === 'GET' ? ['GET', 'HEAD'] : [known]))
      return refuse(req, res, 405, `Only ${allowed.join(', ')} can be asked here.`, [['Allow', allowed.join(', ')]])
    }
    if (route.access === 'read' && !this.#access.mayRead(authorization)) {
      const challenge: Field = ['WWW-Authenticate', 'Bearer realm="headgate"']
      return refuse(req, res, 401, 'Send Authorization: Bearer with admin.readToken or admin.token.', [challenge])
    }
    send(req, res, await page())
  }
}

function refuse(req: IncomingMessage, res: ServerResponse, status: ProblemStatus, detail: string, more: Field[] = []) {
  send(req, res, { status, contentType: PROBLEM_TYPE, body: problem(status, detail) }, more)
}

function send(req: IncomingMessage, res: ServerResponse, page: Page, more: readonly Field[] = []): void {
  if (res.headersSent || res.destroyed) return
  const fields: Field[] = [
    ['Content-Type', page.contentType],
    ['Content-Length', String(Buffer.byteLength(page.body))],
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
    ...more,
  ]
  // A body that nobody reads must not keep the connection.
  if (req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined)
    fields.push(['Connection', 'close'])
  res.writeHead(page.status, fields.flat())
  res.end(req.method === 'HEAD' ? undefined : page.body)
}
