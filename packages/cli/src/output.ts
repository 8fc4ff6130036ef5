import { styleText } from 'node:util'
import { HeadgateError } from 'headgate'

type Style = Parameters<typeof styleText>[0]

/** Where a command writes: what it found to stdout, troubles to stderr; colour only where people look. */
export class Output {
  /** Machines read stdout: it holds one JSON value and nothing else. */
  readonly json: boolean

  constructor(json: boolean) {
    this.json = json
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`)
  }

  /** Infinity becomes null. */
  data(value: unknown): void {
    process.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
  }

  /** What is wrong and what to do; a stack trace only where it is asked for. */
  failure(error: unknown): void {
    const say = (text: string) => process.stderr.write(`${text}\n`)
    const name = styleText('red', 'headgate:', { stream: process.stderr })
    const message = messageOf(error)
    if (!HeadgateError.is(error)) say(`${name} unexpected error: ${message} (HEADGATE_DEBUG=1 shows where)`)
    else if (problemsOf(error) === undefined) say(`${name} ${message}`)
    else say(`${message}\n${name} nothing was done: correct the rule file first`)
    if (process.env.HEADGATE_DEBUG === '1' && error instanceof Error) say(error.stack ?? '')
  }

  /** For stdout: plain unless that is a terminal that shows colours. */
  style(style: Style, text: string): string {
    return styleText(style, text, { stream: process.stdout })
  }
}

/** An error as `--json` shows it. */
export function errorData(error: unknown) {
  const code = HeadgateError.is(error) ? error.code : 'HEADGATE_INTERNAL'
  const problems = problemsOf(error)
  return { error: { code, message: messageOf(error), ...(problems && { problems }) } }
}

/** What is wrong in a rule file that could be read: each is a line of the message, with its place. */
function problemsOf(error: unknown): readonly object[] | undefined {
  const isRuleFile = HeadgateError.is(error) && error.code !== 'HEADGATE_RULES_FILE' && 'problems' in error
  return isRuleFile ? (error.problems as readonly object[]) : undefined
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
