import type { Logger, RunningGateway } from '@headgate/gateway'
import { formatProblem, keepSettings, needsRestart, type Problem, type RuleFile, RuleFileError } from '@headgate/rules'

/** Puts changed rule files in force, and says what became of each. */
export class Reloading {
  #running: RuleFile
  readonly #gateway: Pick<RunningGateway, 'apply' | 'reloadFailed'>
  readonly #log: Logger
  /** The warnings of the file that was read last. */
  #warned: ReadonlySet<string>

  constructor(running: RuleFile, gateway: Pick<RunningGateway, 'apply' | 'reloadFailed'>, log: Logger) {
    this.#running = running
    this.#gateway = gateway
    this.#log = log
    this.#warned = new Set(running.warnings.map(warningKey))
  }

  /** Says those of a file's warnings that the file before it had not. */
  #warn(file: RuleFile): void {
    for (const warning of file.warnings)
      if (!this.#warned.has(warningKey(warning))) this.#log.warn({}, formatProblem(warning))
    this.#warned = new Set(file.warnings.map(warningKey))
  }

  /** @throws RuleFileError where the rules do not fit the settings that wait for a restart; nothing changes then */
  load(next: RuleFile): void {
    const kept = keepSettings(this.#running, next)
    const waiting = needsRestart(this.#running, next)
    this.#warn(next)
    this.#gateway.apply(kept)
    this.#running = kept
    if (waiting.length > 0) this.#log.warn({ settings: waiting }, 'these changes wait for a restart')
  }

  fail(error: unknown): void {
    this.#gateway.reloadFailed()
    if (error instanceof RuleFileError) {
      for (const problem of error.problems)
        if (problem.severity === 'error') this.#log.error({}, formatProblem(problem))
    } else this.#log.error({ err: error }, 'the rule file could not be put in force')
    this.#log.warn({ file: this.#running.file }, 'the rule file was not reloaded: the rules in force stay')
  }
}

/** Not by its line, which moves with every edit above it. */
function warningKey({ path, message }: Problem): string {
  return JSON.stringify([path, message])
}
