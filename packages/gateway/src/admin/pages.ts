/** What the gateway says about itself. */
export interface Readiness {
  /** Whether requests should be sent here: false before listening and while draining. */
  readonly ready: boolean
  /** Whether decisions are made without the store. That is no reason to send requests elsewhere. */
  readonly degraded: boolean
  readonly draining: boolean
}

/** Where the pages get what they show. */
export interface AdminSources {
  readonly metrics: { readonly contentType: string; render(): Promise<string> }
  ready(): Readiness
}

export interface Page {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

export interface Route {
  /** `open`: anybody who can connect; `read`: holders of a token, where a read token is set. */
  readonly access: 'open' | 'read'
  readonly methods: Readonly<Record<string, () => Page | Promise<Page>>>
}

/** Every page of the admin address by its path. */
export function adminRoutes(sources: AdminSources): ReadonlyMap<string, Route> {
  return new Map<string, Route>([
    ['/healthz', { access: 'open', methods: { GET: () => json(200, { status: 'ok' }) } }],
    ['/readyz', { access: 'open', methods: { GET: () => readiness(sources.ready()) } }],
    ['/metrics', { access: 'read', methods: { GET: () => metrics(sources.metrics) } }],
  ])
}

function readiness({ ready, degraded, draining }: Readiness): Page {
  return json(ready && !draining ? 200 : 503, { ready: ready && !draining, degraded, draining })
}

async function metrics(source: AdminSources['metrics']): Promise<Page> {
  return { status: 200, contentType: source.contentType, body: await source.render() }
}

function json(status: number, value: object): Page {
  return { status, contentType: 'application/json', body: JSON.stringify(value) }
}
