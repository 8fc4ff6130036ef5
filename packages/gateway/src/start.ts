import { createRequire } from 'node:module'
import type { RuleFile } from '@headgate/rules'
import { createEngine, type Engine, HeadgateError, refuseUnknown, type Store } from 'headgate'
import { type RunningAdmin, startAdmin } from './admin/index.ts'
import { Gateway } from './gateway.ts'
import { greetStore } from './greeting.ts'
import { defaultLogger, type Logger } from './log.ts'
import { Metrics } from './metrics/index.ts'
import { createStore } from './store.ts'
import { logStore } from './store-log.ts'

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
 * Starts the gateway of a rule file, and its admin address. It gives Redis a moment to be connected to;
 * while the store is away the rules' `onStoreFailure` decides.
 * @throws HeadgateError HEADGATE_LISTEN when an address cannot be listened on, HEADGATE_USAGE when the
 *   file has no `gateway`
 */
export async function startGateway(file: RuleFile, options: GatewayOptions = {}): Promise<RunningGateway> {
  refuseUnknown(options, ['logger'], 'startGateway')
  const { gateway: settings } = file
  if (!settings) {
    throw new HeadgateError('HEADGATE_USAGE', `${file.file} has no gateway: add gateway: with listen: and routes:`)
  }
  const log = options.logger ?? defaultLogger()
  const store = createStore(file, () =>
    log.warn({ store: file.storeName }, 'the store asks for no password: take it out of store:, or protect the server'),
  )
  const engine = await engineOn(store, file)
  const metrics = new Metrics({ version })
  metrics.watch(engine)
  metrics.apply(file)
  const endLog = logStore(engine, file.storeName, log)
  const gateway = new Gateway(file, settings, engine, metrics, log)
  const running = new Running({ gateway, engine, store, metrics, log, endLog, drainMs: settings.drainMs })
  try {
    await greetStore(store, engine)
    await running.listen(file)
  } catch (error) {
    await running.close()
    throw error
  }
  log.info({ address: running.address, admin: running.adminAddress, store: file.storeName }, 'gateway listens')
  return running
}

/** A store that nobody will use is closed: its connection would keep the process alive. */
async function engineOn(store: Store, { timeoutMs, instances }: RuleFile): Promise<Engine> {
  try {
    return createEngine({ store, timeoutMs, instances })
  } catch (error) {
    await store.close()
    throw error
  }
}

interface Parts {
  readonly gateway: Gateway
  readonly engine: Engine
  readonly store: Store
  readonly metrics: Metrics
  readonly log: Logger
  readonly endLog: () => void
  readonly drainMs: number
}

class Running implements RunningGateway {
  address = ''
  declare adminAddress?: string
  readonly #parts: Parts
  #admin: RunningAdmin | undefined
  #ready = false
  #ended: Promise<void> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async listen({ admin }: RuleFile): Promise<void> {
    const { gateway, engine, metrics, log } = this.#parts
    if (admin) {
      const ready = () => ({ ready: this.#ready, degraded: engine.degraded, draining: this.#ended !== undefined })
      this.#admin = await startAdmin(admin, { metrics, ready }, log)
      this.adminAddress = this.#admin.address
    }
    this.address = await gateway.listen()
    this.#ready = true
  }

  apply(file: RuleFile): void {
    const { gateway, metrics, log } = this.#parts
    gateway.apply(file)
    metrics.reload('success')
    metrics.apply(file)
    log.info({ rules: file.version }, 'rules are in force')
  }

  reloadFailed(): void {
    this.#parts.metrics.reload('failure')
  }

  drain(): Promise<void> {
    this.#ended ??= this.#end(this.#parts.drainMs)
    return this.#ended
  }

  async close(): Promise<void> {
    const before = this.#ended
    this.#ended ??= this.#end(0)
    if (before) this.#parts.gateway.cut()
    await this.#ended
  }

  async #end(drainMs: number): Promise<void> {
    const { gateway, engine, store, log, endLog } = this.#parts
    const finished = await gateway.drain(drainMs)
    if (!finished && drainMs > 0) log.warn({ drainMs }, 'requests were cut at the end of the drain')
    await this.#admin?.close()
    await engine.close()
    endLog()
    await store.close()
  }
}
