import type { Link, LinkEvents } from './connection.ts'

/** The shape of a Valkey GLIDE client (`GlideClient`) that is needed here. */
export interface ValkeyGlideClient {
  customCommand(args: string[]): Promise<unknown>
  close(errorMessage?: string): void
}

/** What makes another client of its settings: TypeScript hides the settings, not the object. */
interface Made extends ValkeyGlideClient {
  readonly config: GlideSettings
  readonly constructor: { createClient: MakeGlide }
}

export interface GlideSettings {
  readonly addresses: readonly { readonly host: string; readonly port?: number }[]
  readonly advancedConfiguration?: object
}

export type MakeGlide = (config: object) => Promise<ValkeyGlideClient>

/** Longer than any deadline, in ms: time is kept by the store. */
const NEVER_MS = 3_600_000

export function isGlide(client: object): client is ValkeyGlideClient {
  return (
    'customCommand' in client &&
    typeof client.customCommand === 'function' &&
    'config' in client &&
    typeof (client.constructor as { createClient?: unknown }).createClient === 'function'
  )
}

export function openGlide(client: ValkeyGlideClient, events: LinkEvents, connectTimeoutMs: number): Link {
  const { config, constructor: Client } = client as Made
  return linkOfGlide(config, (own) => Client.createClient(own), events, connectTimeoutMs)
}

/** A connection by a client of these settings that is the store's own. */
export function linkOfGlide(
  config: GlideSettings,
  make: MakeGlide,
  events: LinkEvents,
  connectTimeoutMs: number,
): Link {
  let ended = false
  let own: ValkeyGlideClient | undefined
  const made = make({
    ...config,
    requestTimeout: NEVER_MS,
    inflightRequestsLimit: undefined,
    lazyConnect: false,
    advancedConfiguration: { ...config.advancedConfiguration, connectionTimeout: connectTimeoutMs },
    // Replies have to look the same, and come from the primary, whatever the user's own connection does.
    defaultDecoder: undefined,
    readFrom: undefined,
    pubsubSubscriptions: undefined,
    clientSideCache: undefined,
    clientCircuitBreaker: undefined,
  }).then(
    (client) => {
      own = client
      if (!ended) events.onReady()
    },
    (error: Error) => events.onEnd(inServersWords(error)),
  )
  return {
    async send(args) {
      if (own === undefined) throw new Error('the connection is not there yet')
      try {
        return await own.customCommand(args as string[])
      } catch (error) {
        const fault = inServersWords(error as Error)
        // It would connect again by itself, and let commands wait meanwhile.
        if (['ConnectionError', 'ClosingError'].includes((error as Error).name)) events.onEnd(fault)
        throw fault
      }
    },
    async end() {
      ended = true
      await made
      own?.close()
    },
  }
}

/** Its own names for what servers answer. */
const NAMES: Record<string, string> = {
  NoScriptError: 'NOSCRIPT',
  BusyLoadingError: 'LOADING',
  ReadOnly: 'READONLY',
  MasterDown: 'MASTERDOWN',
  PermissionDenied: 'NOPERM',
  ClusterDown: 'CLUSTERDOWN',
  CrossSlot: 'CROSSSLOT',
  TryAgain: 'TRYAGAIN',
  Moved: 'MOVED',
  Ask: 'ASK',
  ResponseError: 'ERR',
}

/** GLIDE tells refusals as `… signalled by the server: - ReadOnly: text` or as `OOM: text`. */
function inServersWords(error: Error): Error {
  const [, name = '', text = ''] = /(?:^|signalled by the server: - |: )([A-Za-z]+): (.*)$/s.exec(error.message) ?? []
  const code = NAMES[name] ?? (/^[A-Z]+$/.test(name) ? name : undefined)
  return code === undefined ? error : new Error(`${code} ${text}`, { cause: error })
}
