import type { Route } from '@headgate/rules'
import { connectTimeoutMs, Upstream, type UpstreamEvents } from './upstream.ts'

/** A route with its connections. */
export class LiveRoute {
  readonly pattern: string
  readonly timeoutMs: number
  readonly passHost: boolean
  /** How many segments of the path the upstream does not see. */
  readonly #stripped: number
  readonly #upstreams: readonly Upstream[]
  #turn = 0

  constructor(route: Route, upstreams: readonly Upstream[]) {
    this.pattern = route.path
    this.timeoutMs = route.timeoutMs
    this.passHost = route.host === 'pass'
    this.#stripped = route.stripPrefix ? fixedSegments(route.path) : 0
    this.#upstreams = upstreams
  }

  get severalUpstreams(): boolean {
    return this.#upstreams.length > 1
  }

  /** The upstream whose turn it is. */
  next(): Upstream {
    const upstream = this.#upstreams[this.#turn] as Upstream
    this.#turn = (this.#turn + 1) % this.#upstreams.length
    return upstream
  }

  /** The one after another, for a request that the other one did not take. */
  after(upstream: Upstream): Upstream {
    return this.#upstreams[(this.#upstreams.indexOf(upstream) + 1) % this.#upstreams.length] as Upstream
  }

  /** The request's target for the upstream. */
  target(path: string, query: string): string {
    const rest = this.#stripped > 0 ? withoutSegments(path, this.#stripped) : path
    return query === '' ? rest : `${rest}?${query}`
  }
}

/** The routes of a rule file with the connections behind them; connections outlive a reload. */
export class LiveRoutes {
  readonly #events: UpstreamEvents
  #routes = new Map<Route, LiveRoute>()
  #upstreams = new Map<string, Upstream>()

  constructor(events: UpstreamEvents) {
    this.#events = events
  }

  of(route: Route): LiveRoute {
    return this.#routes.get(route) as LiveRoute
  }

  /** Leads to other routes from now on. Requests that are under way finish where they are. */
  apply(routes: readonly Route[]): void {
    const before = this.#upstreams
    this.#upstreams = new Map()
    this.#routes = new Map(routes.map((route) => [route, this.#live(route, before)]))
    for (const [key, upstream] of before) if (!this.#upstreams.has(key)) upstream.retire()
  }

  /** Closes all connections. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.destroy()))
  }

  #live(route: Route, before: ReadonlyMap<string, Upstream>): LiveRoute {
    const upstreams = route.upstreams.map((origin) => {
      const key = `${origin} ${connectTimeoutMs(route.timeoutMs)}`
      const known = this.#upstreams.get(key) ?? before.get(key)
      const upstream = known ?? new Upstream(origin, route.timeoutMs, this.#events)
      this.#upstreams.set(key, upstream)
      return upstream
    })
    return new LiveRoute(route, upstreams)
  }
}

/** The segments of a pattern that a stripped prefix takes along: all but a final `*`. */
function fixedSegments(pattern: string): number {
  return pattern.split('/').filter((segment) => segment !== '' && segment !== '*').length
}

/** A normalised path without its first segments. */
function withoutSegments(path: string, count: number): string {
  let at = 0
  for (let left = count; left > 0 && at >= 0; left -= 1) at = path.indexOf('/', at + 1)
  return at < 0 ? '/' : path.slice(at)
}
