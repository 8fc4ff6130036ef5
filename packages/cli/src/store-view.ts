import { createStore } from '@headgate/gateway'
import type { RuleFile } from '@headgate/rules'
import { type CheckItem, createEngine, type Decision, type Engine, HeadgateError } from 'headgate'

/** Somebody waits at a terminal, not a request: connecting over TLS from afar is in it too. */
const PATIENCE_MS = 3000

/** What a store holds, and what it would decide. */
export interface Budgets {
  readonly decision: Decision
  /** The counters as the store calls them, in the order of the items. */
  readonly keys: readonly string[]
}

/** The file's store as an operator looks into it. */
export interface StoreView {
  peek(items: readonly CheckItem[]): Promise<Budgets>
  reset(items: readonly CheckItem[]): Promise<void>
}

/**
 * Opens the file's store for as long as `use` runs.
 * @throws HeadgateError with HEADGATE_STORE_UNAVAILABLE that names the store and what to do
 */
export async function withStore<T>(file: RuleFile, use: (view: StoreView) => Promise<T>): Promise<T> {
  const store = createStore(file)
  const engine = createEngine({ store, timeoutMs: Math.max(file.timeoutMs, PATIENCE_MS) })
  try {
    return await use({ peek: (items) => peek(engine, file.prefix, items), reset: (items) => engine.reset(items) })
  } catch (error) {
    throw HeadgateError.is(error) && error.code === 'HEADGATE_STORE_UNAVAILABLE' ? unreachable(file, error) : error
  } finally {
    await engine.close()
    await store.close()
  }
}

async function peek(engine: Engine, prefix: string, items: readonly CheckItem[]): Promise<Budgets> {
  let keys: readonly string[] = []
  const off = engine.on('decision', (event) => {
    keys = event.items.map(({ space, value }) => `${prefix}:${space}${value}`)
  })
  // A share of the budget would be judged instead, and look like what the store holds.
  const decision = await engine.peek(items.map((item) => ({ ...item, onStoreFailure: 'throw' })))
  off()
  return { decision, keys }
}

function unreachable(file: RuleFile, error: HeadgateError): HeadgateError {
  const { cause } = error
  const { kind, message } = (cause ?? error) as { kind?: string; message: string }
  const [what, todo] =
    kind === 'auth'
      ? ['lets nobody in', `correct the user and password in store: of ${file.file}`]
      : kind === 'permission'
        ? ['permits too little', 'give its user the commands that Headgate needs']
        : ['is unreachable', `start it, or correct store: in ${file.file}`]
  return new HeadgateError('HEADGATE_STORE_UNAVAILABLE', `${file.storeName} ${what} (${message}); ${todo}`, {
    cause: error,
  })
}
