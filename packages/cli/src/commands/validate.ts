import { formatProblem, loadRules, type Problem, type RuleFile, RuleFileError } from '@headgate/rules'
import { EXIT, type ExitCode, usageError } from '../exit.ts'
import type { ValidateOptions } from '../options.ts'
import { Output } from '../output.ts'
import { ruleFilePath } from '../rule-file.ts'

/** `headgate validate [FILE]`: every problem on a line of its own, then the sum. */
export async function validate(file: string | undefined, options: ValidateOptions): Promise<ExitCode> {
  if (file !== undefined && options.config !== undefined && file !== options.config) {
    throw usageError(`two rule files are named, ${file} and ${options.config}; validate one at a time`)
  }
  const path = ruleFilePath(file ?? options.config)
  const output = new Output(options.json ?? false)
  const { rules, problems } = await check(path)
  const errors = problems.filter((problem) => problem.severity === 'error').length
  if (output.json) {
    output.data({ file: path, valid: rules !== undefined, ...(rules && sizes(rules)), problems })
  } else {
    for (const problem of problems) output.line(painted(problem, output))
    output.line(rules ? fine(path, rules, problems.length, output) : broken(path, errors, output))
  }
  return rules === undefined || (options.strict && problems.length > 0) ? EXIT.refused : EXIT.fine
}

async function check(path: string): Promise<{ rules?: RuleFile; problems: readonly Problem[] }> {
  try {
    const rules = await loadRules(path)
    return { rules, problems: rules.warnings }
  } catch (error) {
    if (error instanceof RuleFileError && error.code !== 'HEADGATE_RULES_FILE') return { problems: error.problems }
    throw error
  }
}

function sizes({ rules, storeName }: RuleFile) {
  return { rules: rules.length, limits: rules.reduce((sum, rule) => sum + rule.limits.length, 0), store: storeName }
}

function fine(path: string, file: RuleFile, warnings: number, output: Output): string {
  const { rules, limits, store } = sizes(file)
  const noted = warnings === 0 ? '' : `, ${count(warnings, 'warning')}`
  return `${path}: ${output.style('green', 'ok')}, ${count(rules, 'rule')} with ${count(limits, 'limit')}, store ${store}${noted}`
}

function broken(path: string, errors: number, output: Output): string {
  return `${path}: ${output.style('red', count(errors, 'error'))}`
}

function painted(problem: Problem, output: Output): string {
  const mark = `${problem.severity}[${problem.code}]`
  const color = problem.severity === 'error' ? 'red' : 'yellow'
  return formatProblem(problem).replace(mark, output.style(color, mark))
}

export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}
