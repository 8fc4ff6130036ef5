import { namedCounters, refuseMemory, unlimitedLine } from '../counters.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { rateText } from '../limit-text.ts'
import type { CommonOptions } from '../options.ts'
import { Output } from '../output.ts'
import { openRules } from '../rule-file.ts'
import { type Budgets, withStore } from '../store-view.ts'
import { table } from '../table.ts'

/** `headgate reset RULE[/LIMIT] --key …` */
export async function reset(target: string, given: readonly string[], options: CommonOptions): Promise<ExitCode> {
  const file = await openRules(options.config)
  refuseMemory(file, 'reset')
  const items = namedCounters(file, target, given)
  const output = new Output(options.json ?? false)
  if (items.length === 0) {
    if (output.json) output.data({ store: file.storeName, reset: [] })
    else output.line(unlimitedLine(target))
    return EXIT.fine
  }
  const before = await withStore(file, async (store) => {
    const budgets = await store.peek(items)
    await store.reset(items)
    return budgets
  })
  if (output.json) output.data({ store: file.storeName, reset: resetData(before) })
  else for (const line of resetLines(before, output)) output.line(line)
  return EXIT.fine
}

function resetData({ decision, keys }: Budgets) {
  return decision.limits.map(({ rule, name, capacity, remaining }, i) => {
    return { rule, name, key: keys[i], capacity, remainingBefore: remaining }
  })
}

function resetLines({ decision, keys }: Budgets, output: Output): string[] {
  return table(
    decision.limits.map((status, i) => [
      `${status.rule}/${status.name}`,
      rateText(status),
      `reset, had ${Math.floor(status.remaining)} of ${status.capacity} left`,
      output.style('dim', keys[i] ?? ''),
    ]),
  )
}
