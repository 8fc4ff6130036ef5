import { createStore } from '@headgate/gateway'
import { parseRules } from '@headgate/rules'
import { createEngine } from 'headgate'

/** Spends from budgets in the store of a rule file, as a gateway does. */
export async function spend(rules: string, rule: string, values: Record<string, string>, times: number): Promise<void> {
  const file = parseRules(rules, { file: 'headgate.yaml' })
  const store = createStore(file)
  const engine = createEngine({ store, timeoutMs: 10_000 })
  for (let i = 0; i < times; i++) await engine.check(file.itemsFor(rule, undefined, values))
  await engine.close()
  await store.close()
}
