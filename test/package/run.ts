import { spawn } from 'node:child_process'
import { delimiter, dirname } from 'node:path'

export interface Finished {
  readonly code: number | null
  readonly output: string
}

/** Runs a command to its end on the Node of this process; `node` stands for it. Output: both streams. */
export function run(cwd: string, command: string, ...args: string[]): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(command === 'node' ? process.execPath : command, args, {
      cwd,
      env: { ...cleanEnvironment(), PATH: dirname(process.execPath) + delimiter + process.env.PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    const collect = (text: string) => {
      output += text
    }
    child.stdout.setEncoding('utf8').on('data', collect)
    child.stderr.setEncoding('utf8').on('data', collect)
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** Without what npm and vitest tell their children, which would reach the commands under test. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const told = /^(npm_|VITEST|NODE_ENV$|NODE_OPTIONS$|TEST$|VITE_|FORCE_COLOR$)/i
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !told.test(name))), NO_COLOR: '1' }
}
