import type { Logger, RunningGateway } from '@headgate/gateway'
import { formatProblem, keepSettings, needsRestart, type RuleFile, RuleFileError } from '@headgate/rules'

/** Puts changed rule files in force, and says what became of each. */
export class Reloading {
  #running: RuleFile
  readonly #gateway: RunningGateway
  readonly #log: Logger

  constructor(running: RuleFile, gateway: RunningGateway, log: Logger) {
    this.#running = running
    this.#gateway = gateway
    this.#log = log
  }

  /** @throws RuleFileError where the rules do not fit the settings that wait for a restart; nothing changes then */
  load(next: RuleFile): void {
    const kept = keepSettings(this.#running, next)
    const waiting = needsRestart(this.#running, next)
    for (const warning of next.warnings) this.#log.warn({}, formatProblem(warning))
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
