import { namedCounters, refuseMemory, unlimitedLine } from '../counters.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { leftText, rateText } from '../limit-text.ts'
import type { CommonOptions } from '../options.ts'
import { Output } from '../output.ts'
import { refusalText } from '../refusal-text.ts'
import { openRules } from '../rule-file.ts'
import { type Budgets, withStore } from '../store-view.ts'
import { table } from '../table.ts'
import { waitText } from '../wait-text.ts'

/** `headgate peek RULE[/LIMIT] --key …` */
export async function peek(target: string, given: readonly string[], options: CommonOptions): Promise<ExitCode> {
  const file = await openRules(options.config)
  refuseMemory(file, 'peek')
  const items = namedCounters(file, target, given)
  const output = new Output(options.json ?? false)
  if (items.length === 0) {
    if (output.json) output.data({ store: file.storeName, allowed: true, limits: [] })
    else output.line(unlimitedLine(target))
    return EXIT.fine
  }
  const budgets = await withStore(file, (store) => store.peek(items))
  if (output.json) output.data({ store: file.storeName, ...peekData(budgets) })
  else for (const line of peekLines(budgets, output)) output.line(line)
  return budgets.decision.allowed ? EXIT.fine : EXIT.refused
}

/** The decision, with each counter's key beside its numbers. */
function peekData({ decision, keys }: Budgets) {
  return { ...decision, limits: decision.limits.map((status, i) => ({ ...status, key: keys[i] })) }
}

function peekLines({ decision, keys }: Budgets, output: Output): string[] {
  const rows = decision.limits.map((status, i) => {
    const left = leftText(status)
    return [
      `${status.rule}/${status.name}`,
      rateText(status),
      status.retryAfterMs > 0 ? output.style('red', left) : left,
      status.resetAfterMs > 0 ? `unused in ${waitText(status.resetAfterMs)}` : 'unused',
      output.style('dim', keys[i] ?? ''),
    ]
  })
  return decision.allowed
    ? table(rows)
    : [...table(rows), output.style('red', `Refused now: ${refusalText(decision)}.`)]
}
