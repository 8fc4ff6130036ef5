// What every script here shares. Plain Node: it runs before anything is installed.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

export const root = join(import.meta.dirname, '..')

// Children run on the Node that runs this script, whatever else is on the PATH.
const path = dirname(process.execPath) + delimiter + process.env.PATH

/**
 * Runs a command in the repository.
 * @param {readonly string[]} argv  `node` stands for this Node
 * @param {{ quiet?: boolean, cwd?: string, env?: Record<string, string>, timeoutMs?: number }} [options]  quiet: collect the output
 * @returns {Promise<{ code: number, output: string }>}
 */
export function run(argv, { quiet = false, cwd = root, env = {}, timeoutMs } = {}) {
  const [command, ...args] = argv
  const child = spawn(command === 'node' ? process.execPath : command, args, {
    cwd,
    env: { ...process.env, PATH: path, ...env },
    stdio: quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    // npm is a .cmd file on Windows, which only a shell starts.
    shell: process.platform === 'win32' && command === 'npm',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ code: 1, output: `${output}${command}: ${error.message}\n` }))
    child.on('close', (code, signal) =>
      resolve({ code: code ?? 1, output: signal ? `${output}killed by ${signal}\n` : output }),
    )
  })
}

/** Installs the packages if those in node_modules are not the ones that the lock file names. */
export async function install() {
  if (isInstalled()) return
  console.log('Installing packages (npm ci) …')
  const { code } = await run(['npm', 'ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'])
  if (code !== 0) fail('npm ci failed (see above). It needs npm and a package registry that it can reach.')
}

function isInstalled() {
  const locked = packagesOf(join(root, 'package-lock.json'))
  const installed = packagesOf(join(root, 'node_modules/.package-lock.json'))
  return Object.entries(locked ?? {}).every(([place, { version, link, optional }]) => {
    if (place === '' || optional) return true
    const there = installed?.[place]
    return there !== undefined && (link || there.version === version)
  })
}

// npm writes the second file last: it says what an install that finished has put there.
function packagesOf(lockFile) {
  try {
    return JSON.parse(readFileSync(lockFile, 'utf8')).packages
  } catch {
    return undefined
  }
}

/** Ends the script with a line that says what is wrong and what to do. */
export function fail(message) {
  console.error(`\n${message}`)
  process.exit(1)
}

/** Whether a program can be started by its name. */
export function isOnPath(program) {
  return path.split(delimiter).some((folder) => existsSync(join(folder, program)))
}
