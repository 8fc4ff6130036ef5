import { createRequire } from 'node:module'
import type { RuleFile } from '@headgate/rules'
import { createEngine, type Engine, HeadgateError } from 'headgate'
import { Gateway } from './gateway.ts'
import { defaultLogger, type Logger } from './log.ts'
import { Metrics } from './metrics/index.ts'
import { createStore } from './store.ts'

export interface GatewayOptions {
  /** Default: JSON lines on standard output. */
  logger?: Logger
}

/** A gateway that serves requests. */
export interface RunningGateway {
  /** Where it listens: `http://host:port`, or `unix:path`. */
  readonly address: string
  /** The same of the admin address, where the file has one. */
  readonly adminAddress?: string
  /** Judges and forwards by this file from now on: its rules, dimensions and routes. The rest waits for a restart. */
  apply(file: RuleFile): void
  /** The rule file was to be reloaded and has errors: the rules in force stay, and the metrics say so. */
  reloadFailed(): void
  /**
   * Stops accepting, finishes the requests under way within `gateway.drain`, then closes everything.
   * Resolves when nothing is left open.
   */
  drain(): Promise<void>
  /** Closes everything at once. */
  close(): Promise<void>
}

const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/**
 * Starts the gateway of a rule file, and its admin address. It does not wait for Redis: while the store
 * is away the rules' `onStoreFailure` decides.
 * @throws HeadgateError HEADGATE_LISTEN when an address cannot be listened on, HEADGATE_USAGE when the
 *   file has no `gateway`
 */
export async function startGateway(file: RuleFile, options: GatewayOptions = {}): Promise<RunningGateway> {
  const { gateway: settings } = file
  if (!settings) {
    throw new HeadgateError('HEADGATE_USAGE', `${file.file} has no gateway: add gateway: with listen: and routes:`)
  }
  const log = options.logger ?? defaultLogger()
  const store = createStore(file)
  const engine = createEngine({ store, timeoutMs: file.timeoutMs, instances: file.instances })
  const metrics = new Metrics({ version })
  metrics.watch(engine)
  metrics.apply(file)
  logTransitions(engine, file.storeName, log)
  const gateway = new Gateway(file, settings, engine, metrics, log)
  const closeStore = async (): Promise<void> => {
    await engine.close()
    await store.close()
  }
  const address = await gateway.listen().catch(async (error: unknown) => {
    await closeStore()
    throw error
  })
  log.info({ address, store: file.storeName, rules: file.version }, 'gateway listens')
  return {
    address,
    apply: (next) => {
      gateway.apply(next)
      metrics.reload('success')
      metrics.apply(next)
    },
    reloadFailed: () => metrics.reload('failure'),
    drain: async () => {
      if (!(await gateway.drain())) log.warn({ drainMs: settings.drainMs }, 'requests were cut at the end of the drain')
      await closeStore()
    },
    close: async () => {
      await gateway.close()
      await closeStore()
    },
  }
}

/** One line for each change, never one for each request. */
function logTransitions(engine: Engine, store: string, log: Logger): void {
  engine.on('degraded', ({ reason, kind }) =>
    log.warn({ store, reason, kind }, 'store is away: rules decide without it'),
  )
  engine.on('recovered', ({ awayMs }) => log.info({ store, awayMs }, 'store answers again'))
  engine.on('error', ({ message, kind, count }) => log.warn({ store, kind, count }, message))
}
