import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
// biome-ignore lint/correctness/noUndeclaredDependencies: only tests load this file
import { onTestFinished } from 'vitest'
import { HEADGATE_BIN } from '../../../../test/fresh-build.ts'

/** How a command ended, and what it wrote. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs the built command line to its end. */
export async function headgate(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const running = new Running(args, options)
  const code = await running.exit
  return { code, stdout: running.stdout, stderr: running.stderr }
}

/** Starts `headgate up`; it is killed with its test. */
export async function headgateUp(args: readonly string[], options: RunOptions = {}): Promise<Running> {
  const running = new Running(['up', ...args], options)
  onTestFinished(() => running.kill())
  await running.says('gateway listens')
  return running
}

/** A command that runs. */
export class Running {
  stdout = ''
  stderr = ''
  readonly exit: Promise<number | null>
  readonly #child: ChildProcess

  constructor(args: readonly string[], { cwd, env }: RunOptions) {
    const child = spawn(process.execPath, [HEADGATE_BIN, ...args], {
      cwd: cwd ?? tmpdir(),
      env: { ...plainEnv(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
    })
    this.exit = once(child, 'close').then(([code]) => code as number | null)
    this.#child = child
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  /** Waits until standard output holds the text, `times` over. */
  async says(text: string, times = 1): Promise<void> {
    for (let ended = false; this.stdout.split(text).length <= times; ) {
      if (ended) throw new Error(`it ended and never said ${JSON.stringify(text)}:\n${this.stdout}${this.stderr}`)
      const tick = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 20))
      ended = await Promise.race([tick, this.exit.then(() => true)])
    }
  }
}

/** Nothing of this machine decides what a test sees: under CI, for one, node takes every terminal for colourless. */
export function plainEnv(): NodeJS.ProcessEnv {
  const names = Object.keys(process.env).filter((name) =>
    /^(HEADGATE_.*|NO_COLOR|FORCE_COLOR|CI|NODE_OPTIONS)$/.test(name),
  )
  return { ...process.env, ...Object.fromEntries(names.map((name) => [name, undefined])) }
}

/** A folder with these files, gone with the test or suite that `after` belongs to. */
export function folderWith(files: Readonly<Record<string, string>>, after: (clean: () => void) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-cli-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}
