import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { EXIT, type ExitCode, usageError } from './exit.ts'
import { EXPLAIN_HELP, PEEK_HELP, PROGRAM_HELP, RESET_HELP, UP_HELP, VALIDATE_HELP } from './help.ts'
import type { CommonOptions, ExplainOptions, KeyOptions, ValidateOptions } from './options.ts'

/**
 * Carries a command line out.
 * @throws HeadgateError with HEADGATE_USAGE for a command line that is wrong
 */
export async function runProgram(argv: readonly string[]): Promise<ExitCode> {
  let code: ExitCode = EXIT.fine
  const program = buildProgram((result) => {
    code = result
  })
  try {
    refuseMisplaced(argv, program)
    await program.parseAsync(helpOfNone(argv, program) ?? argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Help that was asked for is an answer; help because nothing was asked is not.
    if (error.exitCode === 0) return EXIT.fine
    if (error.code === 'commander.help') return EXIT.usage
    throw usageError(sentence(error.message, program, argv))
  }
  return code
}

function namesOf(program: Command): string[] {
  return program.commands.flatMap((command) => [command.name(), ...command.aliases()])
}

/** For the help of a command that is none commander shows the whole help; given the command, it says what is wrong. */
function helpOfNone([help, name = 'help']: readonly string[], program: Command): string[] | undefined {
  return help !== 'help' || name.startsWith('-') || [...namesOf(program), 'help'].includes(name) ? undefined : [name]
}

/** Commander would call the option unknown, though the command knows it. */
function refuseMisplaced(argv: readonly string[], program: Command): void {
  const commands = namesOf(program)
  const [first = ''] = argv
  const own = ['-h', '--help', '-V', '--version']
  const command = argv.find((word) => commands.includes(word))
  if (first.startsWith('-') && !own.includes(first) && command !== undefined) {
    throw usageError(`${first} stands before the command; write it after the command: headgate ${command} ${first} …`)
  }
}

/** A message of commander's on one line, with what to do. */
function sentence(message: string, program: Command, [name = '']: readonly string[]): string {
  const text = message.replace(/^error: /, '').replace(/\.$/, '')
  if (text.includes('\n(Did you mean ')) return text.replace(/\n\(Did you mean (.*)\?\)$/s, '; did you mean $1')
  const command = program.commands.find((each) => each.name() === name || each.aliases().includes(name))
  return `${text}; see headgate ${command ? `${name} ` : ''}--help`
}

function buildProgram(finish: (code: ExitCode) => void): Command {
  const program = new Command('headgate')
    .description('A distributed rate limiter: run the gateway, check rule files, look into budgets.')
    .version(versionText(), '-V, --version', 'print the version')
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText('after', PROGRAM_HELP)
  prepare(program)
  addUp(program, finish)
  addValidate(program, finish)
  addExplain(program, finish)
  addPeek(program, finish)
  addReset(program, finish)
  return program
}

/** Errors come back as exceptions, and are printed in one place. */
function prepare(command: Command): Command {
  return command
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .helpOption('-h, --help', 'show this help')
}

function add(program: Command, name: string, description: string, help: string): Command {
  return prepare(program.command(name))
    .description(description)
    .option('-c, --config <file>', 'the rule file (default: $HEADGATE_CONFIG, then ./headgate.yaml)')
    .option('--json', 'print JSON, for programs')
    .addHelpText('after', help)
}

function addUp(program: Command, finish: (code: ExitCode) => void): void {
  // Commander would only count the arguments that are too many.
  add(program, 'up', 'Run what the rule file has: the gateway, the admin address.', UP_HELP)
    .allowExcessArguments()
    .action(async (options: CommonOptions, command: Command) => {
      const [file] = command.args
      if (file !== undefined) throw usageError(`up takes no file by itself; write -c ${file}: headgate up -c ${file}`)
      const { up } = await import('./commands/up.ts')
      finish(await up(options))
    })
}

function addValidate(program: Command, finish: (code: ExitCode) => void): void {
  add(program, 'validate', 'Check a rule file, and say all that is wrong with it.', VALIDATE_HELP)
    .alias('check')
    .argument('[file]', 'the rule file; the same as -c')
    .option('--strict', 'exit 1 also for warnings')
    .action(async (file: string | undefined, options: ValidateOptions) => {
      const { validate } = await import('./commands/validate.ts')
      finish(await validate(file, options))
    })
}

function addExplain(program: Command, finish: (code: ExitCode) => void): void {
  add(program, 'explain', 'Say what would be decided about a request, and why. Changes nothing.', EXPLAIN_HELP)
    .argument('<method>', 'the HTTP method')
    .argument('<path>', 'the path with its query, or a whole URL')
    .option('-H, --header <field>', "a field of the request, 'name: value'; as often as needed", collect)
    .option('--ip <address>', 'where the request comes from (default: 127.0.0.1)')
    .action(async (method: string, path: string, options: ExplainOptions) => {
      const { explain } = await import('./commands/explain.ts')
      finish(await explain(method, path, options))
    })
}

function addPeek(program: Command, finish: (code: ExitCode) => void): void {
  addKey(add(program, 'peek', 'Show what a key has left. Changes nothing.', PEEK_HELP)).action(
    async (target: string, value: string | undefined, options: KeyOptions) => {
      const { peek } = await import('./commands/peek.ts')
      finish(await peek(target, keysOf(value, options), options))
    },
  )
}

function addReset(program: Command, finish: (code: ExitCode) => void): void {
  addKey(add(program, 'reset', 'Forget what a key has used: it has its whole budget again.', RESET_HELP)).action(
    async (target: string, value: string | undefined, options: KeyOptions) => {
      const { reset } = await import('./commands/reset.ts')
      finish(await reset(target, keysOf(value, options), options))
    },
  )
}

function addKey(command: Command): Command {
  return command
    .argument('<rule[/limit]>', 'a rule, or one limit of it')
    .argument('[value]', 'the same as --key')
    .option('-k, --key <key>', 'whose: dimension=value, or the value alone; as often as needed', collect)
}

function keysOf(value: string | undefined, { key = [] }: KeyOptions): readonly string[] {
  return value === undefined ? key : [value, ...key]
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

function versionText(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
