import { main } from '@headgate/cli'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { document, documents } from './markdown.ts'

const reference = document('docs/reference/command-line.md').prose

afterEach(() => vi.restoreAllMocks())

async function helpOf(...command: string[]): Promise<string> {
  let text = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk)
    return true
  })
  expect(await main([...command, '--help'])).toBe(0)
  vi.restoreAllMocks()
  return text
}

/** The lines of a part of a help, such as `Commands:`. */
function partOf(help: string, title: string): string[] {
  const [, part = ''] = new RegExp(`^${title}:\\n((?: {2}.*\\n?)+)`, 'm').exec(help) ?? []
  return part.split('\n').filter((line) => /^ {2}\S/.test(line))
}

const commands = partOf(await helpOf(), 'Commands')
  .map((line) => line.trim().split(/[ |]/)[0] as string)
  .filter((name) => name !== 'help')

describe('the reference of the command line', () => {
  it('has a heading for every command', () => {
    expect(commands.length).toBeGreaterThan(3)
    for (const command of commands) expect(reference).toMatch(new RegExp(`^## .*\`(?:headgate )?${command}\``, 'm'))
  })

  it.each(commands)('has every option of %s', async (command) => {
    const options = partOf(await helpOf(command), 'Options').map((line) => /--[\w-]+/.exec(line)?.[0])
    expect(options.length).toBeGreaterThan(2)
    for (const option of options) expect(reference).toContain(option)
  })
})

it('every document calls the command in the one way that works for flags too', () => {
  const others = documents().flatMap(({ name, prose, blocks }) => {
    const text = [prose, ...blocks.map(({ code }) => code)].join('\n')
    // To say what does not work is right.
    return (text.match(/(?<!Not `)npx -\S* .*headgate/g) ?? []).map((line) => `${name}: ${line}`)
  })
  expect(others).toEqual([])
})
