import { namedCounters, refuseMemory, unlimitedLine } from '../counters.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { amountText, stateText, type Written, writtenOf } from '../limit-text.ts'
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
  const written = items.map((item) => writtenOf(file, item))
  if (output.json) output.data({ store: file.storeName, reset: resetData(before, written) })
  else for (const line of resetLines(before, written, output)) output.line(line)
  return EXIT.fine
}

function resetData({ decision, keys }: Budgets, written: readonly Written[]) {
  return decision.limits.map(({ rule, name, capacity, remaining, blocked }, i) => {
    const { scope } = written[i] as Written
    return {
      rule,
      name,
      key: keys[i],
      capacity,
      remainingBefore: remaining,
      ...(scope && { scope }),
      ...(blocked && { blocked }),
    }
  })
}

function resetLines({ decision, keys }: Budgets, written: readonly Written[], output: Output): string[] {
  return table(
    decision.limits.map((status, i) => {
      const own = written[i] as Written
      const had = `reset, had ${amountText(status, own, decision.at)}${status.blocked ? ', still blocked' : ''}`
      return [
        `${status.rule}/${status.name}`,
        own.text,
        own.scope === undefined ? had : stateText(status, own, decision.at),
        output.style('dim', keys[i] ?? ''),
      ]
    }),
  )
}
