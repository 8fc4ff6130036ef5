import { type CheckItem, type Engine, type Store, tokenBucket } from 'headgate'

/** A store that is slow to connect is not away, in ms. */
const PATIENCE_MS = 2000

const item: CheckItem = {
  name: 'greeting',
  key: '',
  limit: tokenBucket({ limit: 1, period: '1s' }),
  onStoreFailure: 'open',
}
const part = { ...item, space: 'greeting:', value: '', cost: 1, onStoreFailure: 'open' } as const

/**
 * Waits a moment until the store can be asked, so that the first requests are decided by it. Where it is
 * away, it is asked once through the engine: without requests nobody would notice, and log, metrics and
 * readiness could not say so. Writes nothing. Never rejects.
 */
export async function greetStore(store: Store, engine: Engine): Promise<void> {
  if (store.kind === 'local') return
  try {
    await store.run({ parts: [part], peek: true }, performance.now() + PATIENCE_MS)
  } catch {
    await engine.peek([item]).catch(() => undefined)
  }
}
