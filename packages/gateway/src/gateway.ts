import type { Server } from 'node:http'
import type { GatewaySettings, RuleFile } from '@headgate/rules'
import type { Engine } from 'headgate'
import { trustSettings } from 'headgate/http'
import { LiveRoutes } from './forward/live-routes.ts'
import { Connections } from './front/connections.ts'
import { drainServer } from './front/draining.ts'
import type { Front, RequestMetrics } from './front/front.ts'
import { Waiting } from './front/permit.ts'
import { requestFields } from './front/request-head.ts'
import { frontServer } from './front/server.ts'
import { listen } from './listen.ts'
import type { Logger } from './log.ts'

/** The front: the server for clients and all that a request needs on its way. */
export class Gateway {
  readonly #server: Server
  readonly #settings: GatewaySettings
  readonly #routes: LiveRoutes
  readonly #front: Front & { live: Front['live']; draining: boolean }

  constructor(file: RuleFile, settings: GatewaySettings, engine: Engine, metrics: RequestMetrics, log: Logger) {
    this.#settings = settings
    this.#routes = new LiveRoutes({
      upstreamFailed: (upstream, reason) => log.warn({ upstream, reason }, 'upstream fails'),
      upstreamRecovered: (upstream) => log.info({ upstream }, 'upstream answers again'),
      unexpected: (error) => log.error({ err: error }, 'a connection to an upstream broke'),
    })
    this.#routes.apply(settings.routes)
    const { trustedProxies, trustedHops, clientAddress } = settings
    const trust = trustSettings({ trustedProxies, trustedHops, clientAddress })
    this.#front = {
      live: { file, routes: this.#routes },
      engine,
      fields: requestFields(trust.field),
      trust,
      paths: settings.paths,
      corsOrigins: settings.cors.origins,
      connections: new Connections(),
      waiting: new Waiting(),
      metrics,
      log,
      draining: false,
    }
    this.#server = frontServer(this.#front, settings.listen.kind === 'unix')
  }

  /** @returns the address that it listens on, as text */
  listen(): Promise<string> {
    return listen(this.#server, this.#settings.listen, 'gateway')
  }

  /** New rules and routes, for requests from now on. */
  apply(file: RuleFile): void {
    this.#routes.apply(file.gateway?.routes ?? [])
    this.#front.live = { file, routes: this.#routes }
  }

  /**
   * Stops accepting, finishes what is under way, and closes everything; what is not finished after
   * `drainMs` is cut.
   * @returns whether everything finished by itself
   */
  async drain(drainMs: number): Promise<boolean> {
    this.#front.draining = true
    const { connections } = this.#front
    const finished = await drainServer(this.#server, drainMs, () => connections.closeUnused())
    connections.close()
    await this.#routes.destroy()
    return finished
  }

  /** Cuts what a drain still waits for. */
  cut(): void {
    this.#server.closeAllConnections()
  }
}
