import { defaultLogger, type Logger, startGateway } from '@headgate/gateway'
import { formatProblem, watchRules } from '@headgate/rules'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions } from '../options.ts'
import { openRules } from '../rule-file.ts'
import { Reloading } from '../up/reloading.ts'
import { Signals } from '../up/signals.ts'
import { textLogger } from '../up/text-logger.ts'

/** `headgate up`: serves until it is told to stop. */
export async function up(options: CommonOptions): Promise<ExitCode> {
  // So that it is told from other Node processes.
  process.title = 'headgate'
  const log: Logger = options.json ? defaultLogger() : textLogger()
  const file = await openRules(options.config)
  for (const warning of file.warnings) log.warn({}, formatProblem(warning))
  const signals = new Signals(log)
  const gateway = await startGateway(file, { logger: log })
  const reloading = new Reloading(file, gateway, log)
  const watcher = watchRules(file.file, {
    current: file,
    onLoad: (next) => reloading.load(next),
    onError: (error) => reloading.fail(error),
  })
  signals.onReload = () => void watcher.reload()
  signals.onImpatience = () => void gateway.close()
  const { reason, failed } = await signals.stopped
  log.info({ reason }, 'stopping: requests under way finish first')
  await watcher.close()
  await gateway.drain()
  log.info({}, 'stopped')
  return failed ? EXIT.refused : EXIT.fine
}
