import { stripVTControlCharacters, styleText } from 'node:util'
import type { Logger } from '@headgate/gateway'

type Level = 'info' | 'warn' | 'error'

const COLORS = { info: 'green', warn: 'yellow', error: 'red' } as const

/** A line for each event, for people: time, level, what happened, and its details as `name=value`. */
export function textLogger(): Logger {
  const write = (level: Level) => (details: object, message: string) => {
    const time = paint('dim', new Date().toISOString())
    const facts = Object.entries(details).flatMap(([name, value]) => fact(name, value))
    process.stdout.write(`${[time, paint(COLORS[level], level.padEnd(5)), message, ...facts].join(' ')}\n`)
  }
  return { info: write('info'), warn: write('warn'), error: write('error') }
}

function paint(style: Parameters<typeof styleText>[0], text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

function fact(name: string, value: unknown): string[] {
  if (value === undefined) return []
  // What came from outside must not look like a line, or a colour, of ours.
  const plain = stripVTControlCharacters(textOf(value))
  return [`${paint('dim', `${name}=`)}${/^[^\s"=]+$/.test(plain) ? plain : JSON.stringify(plain)}`]
}

function textOf(value: unknown): string {
  if (value instanceof Error) return value.message
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
