import type { RuleFile } from '@headgate/rules'
import type { RuleRequest } from 'headgate'
import { EXIT, type ExitCode, exitCodeOf } from '../exit.ts'
import { type Judged, judgedRules } from '../explain/judged.ts'
import { readRequest } from '../explain/request.ts'
import { requestLine, ruleLines, verdictLine } from '../explain/text.ts'
import { budgetsOf, type Verdict, verdictOfLimits, verdictOfRules } from '../explain/verdict.ts'
import { limitData } from '../limit-text.ts'
import type { ExplainOptions } from '../options.ts'
import { errorData, Output } from '../output.ts'
import { openRules } from '../rule-file.ts'

/** `headgate explain METHOD PATH`: which rules match, what their limits hold, what would be decided. */
export async function explain(method: string, target: string, options: ExplainOptions): Promise<ExitCode> {
  const file = await openRules(options.config)
  const output = new Output(options.json ?? false)
  const read = readRequest(file, method, target, options)
  if ('problem' in read) {
    const verdict = { allowed: false, status: 400, why: read.problem }
    if (output.json) output.data({ rules: [], ...verdict })
    else output.line(verdictLine(verdict, output))
    return EXIT.refused
  }
  const explained = await explainRequest(file, read.request, read.notes)
  if (output.json) output.data(dataOf(explained))
  else for (const line of linesOf(explained, output)) output.line(line)
  const { failure, verdict } = explained
  if (failure === undefined) return verdict?.allowed ? EXIT.fine : EXIT.refused
  output.failure(failure)
  return exitCodeOf(failure)
}

interface Explained {
  readonly request: RuleRequest
  readonly notes: readonly string[]
  readonly rules: readonly Judged[]
  /** undefined: the store did not answer. */
  readonly verdict: Verdict | undefined
  /** Whether the store said what is used, or an unused budget was judged. */
  readonly budget: 'store' | 'unused'
  readonly failure: unknown
}

async function explainRequest(file: RuleFile, request: RuleRequest, notes: readonly string[]): Promise<Explained> {
  const explanation = file.explain(request)
  // Redis may be away: what the rules say is worth showing all the same.
  const { budgets, failure } = await budgetsOf(explanation, file).then(
    (known) => ({ budgets: known, failure: undefined }),
    (error: unknown) => ({ budgets: undefined, failure: error }),
  )
  return {
    request,
    notes,
    rules: judgedRules(explanation, file, budgets),
    verdict: budgets ? verdictOfLimits(budgets.decision, file, request) : verdictOfRules(explanation, file, request),
    budget: file.store.kind === 'memory' ? 'unused' : 'store',
    failure,
  }
}

function linesOf({ request, notes, rules, verdict, budget }: Explained, output: Output): string[] {
  const unused = budget === 'unused' && verdict?.decision !== undefined
  const said = unused ? [...notes, 'store: memory is inside the gateway, so an unused budget is judged'] : notes
  return [
    requestLine(request, output),
    ...said.map((note) => output.style('dim', `  ${note}`)),
    '',
    ...ruleLines(rules, verdict?.decision?.at ?? 0, output),
    ...(verdict === undefined ? [] : ['', verdictLine(verdict, output)]),
  ]
}

function dataOf({ request, notes, rules, verdict, budget, failure }: Explained) {
  const { method, path, query, host, ip, trusted, route } = request
  return {
    request: { method, path, query, host, ip, trusted, route: route ?? null },
    notes,
    rules: rules.map((rule) => ({
      ...rule,
      limits: rule.limits.map(({ name, by, note, status, written, storeKey }) => ({
        name,
        by,
        note,
        key: storeKey,
        ...(written && limitData(status, written, verdict?.decision?.at ?? 0)),
      })),
    })),
    budget,
    ...(verdict ?? { allowed: null }),
    ...(failure === undefined ? {} : errorData(failure)),
  }
}
