import { createStore } from '@headgate/gateway'
import { parseRules } from '@headgate/rules'
import { type CheckItem, createEngine, type Engine } from 'headgate'

/** Spends from budgets in the store of a rule file, as a gateway does. */
export async function spend(rules: string, rule: string, values: Record<string, string>, times: number): Promise<void> {
  await withItems(rules, rule, values, async (engine, items) => {
    for (let i = 0; i < times; i++) await engine.check(items)
  })
}

/** Blocks keys for an hour, as a penalty does. */
export async function block(rules: string, rule: string, values: Record<string, string>): Promise<void> {
  await withItems(rules, rule, values, (engine, items) => engine.block(items, { durationMs: 3_600_000 }))
}

async function withItems(
  rules: string,
  rule: string,
  values: Record<string, string>,
  work: (engine: Engine, items: readonly CheckItem[]) => Promise<void>,
): Promise<void> {
  const file = parseRules(rules, { file: 'headgate.yaml' })
  const store = createStore(file)
  const engine = createEngine({ store, timeoutMs: 10_000 })
  await work(engine, file.itemsFor(rule, undefined, values))
  await engine.close()
  await store.close()
}
