import { namedCounters, refuseMemory, unlimitedLine } from '../counters.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { limitData, stateText, unusedText, type Written, writtenOf } from '../limit-text.ts'
import type { CommonOptions } from '../options.ts'
import { Output } from '../output.ts'
import { refusalText } from '../refusal-text.ts'
import { openRules } from '../rule-file.ts'
import { type Budgets, withStore } from '../store-view.ts'
import { table } from '../table.ts'

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
  const written = items.map((item) => writtenOf(file, item))
  if (output.json) output.data({ store: file.storeName, ...peekData(budgets, written) })
  else for (const line of peekLines(budgets, written, output)) output.line(line)
  return budgets.decision.allowed ? EXIT.fine : EXIT.refused
}

/** The decision, with each counter's key beside its numbers. */
function peekData({ decision, keys }: Budgets, written: readonly Written[]) {
  const limits = decision.limits.map((status, i) => ({
    ...limitData(status, written[i] as Written, decision.at),
    key: keys[i],
  }))
  return { ...decision, limits }
}

function peekLines({ decision, keys }: Budgets, written: readonly Written[], output: Output): string[] {
  const rows = decision.limits.map((status, i) => {
    const own = written[i] as Written
    const state = stateText(status, own, decision.at)
    return [
      `${status.rule}/${status.name}`,
      own.text,
      status.retryAfterMs > 0 ? output.style('red', state) : state,
      unusedText(status, own),
      output.style('dim', keys[i] ?? ''),
    ]
  })
  return decision.allowed
    ? table(rows)
    : [...table(rows), output.style('red', `Refused now: ${refusalText(decision)}.`)]
}
