import { type ExitCode, exitCodeOf } from './exit.ts'
import { errorData, Output } from './output.ts'
import { runProgram } from './program.ts'

/**
 * Runs the command line.
 * @param argv what follows the program's name
 * @returns what the process should end with
 */
export async function main(argv: readonly string[]): Promise<ExitCode> {
  endQuietlyWhenNobodyReads()
  try {
    return await runProgram(argv)
  } catch (error) {
    const output = new Output(argv.includes('--json'))
    if (output.json && argv[0] === 'up') await logLine(error)
    else if (output.json) output.data(errorData(error))
    output.failure(error)
    return exitCodeOf(error)
  }
}

/** Whoever reads the events of `up --json` reads lines. */
async function logLine(error: unknown): Promise<void> {
  const { defaultLogger } = await import('@headgate/gateway')
  const { message, ...details } = errorData(error).error
  defaultLogger().error(details, message)
}

/** `headgate explain … | head -1`: a closed pipe is no error. */
function endQuietlyWhenNobodyReads(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0)
      throw error
    })
  }
}
