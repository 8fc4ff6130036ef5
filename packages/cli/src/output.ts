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

  /** What is wrong and what to do, never a stack trace unless asked for. */
  failure(error: unknown): void {
    const known = HeadgateError.is(error)
    const text = known ? messageOf(error) : `unexpected error: ${messageOf(error)} (HEADGATE_DEBUG=1 shows where)`
    process.stderr.write(`${styleText('red', 'headgate:', { stream: process.stderr })} ${text}\n`)
    if (process.env.HEADGATE_DEBUG === '1' && error instanceof Error) process.stderr.write(`${error.stack}\n`)
  }

  /** For stdout: plain unless that is a terminal that shows colours. */
  style(style: Style, text: string): string {
    return styleText(style, text, { stream: process.stdout })
  }
}

/** An error as `--json` shows it. */
export function errorData(error: unknown) {
  return { error: { code: HeadgateError.is(error) ? error.code : 'HEADGATE_INTERNAL', message: messageOf(error) } }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
