// The servers that the tests talk to. A missing one fails the run with the command that installs it.
import { fail, isOnPath, run } from './setup.mjs'

/** Program → what installs it. */
const servers = {
  'redis-server': {
    debian: 'redis-server',
    other: 'Redis (macOS: brew install redis; Fedora: dnf install redis; Arch: pacman -S redis)',
  },
}

/** Makes sure that every server is there: as root on Debian by installing it, never with sudo. */
export async function getServers() {
  const missing = Object.keys(servers).filter((program) => !isOnPath(program))
  if (missing.length === 0) return
  const debian = missing.map((program) => servers[program].debian)
  if (process.getuid?.() === 0 && isOnPath('apt-get')) await aptInstall(debian)
  const still = missing.filter((program) => !isOnPath(program))
  if (still.length === 0) return
  fail(
    `The tests need ${still.join(', ')} on the PATH. Install, then run npm test again:\n` +
      (isOnPath('apt-get')
        ? `  apt-get update && apt-get install -y ${debian.join(' ')}   (as root)`
        : still.map((program) => `  ${servers[program].other}`).join('\n')),
  )
}

async function aptInstall(names) {
  console.log(`Installing ${names.join(', ')} (apt-get) …`)
  // Runlevel 1 keeps the package from starting its own server on port 6379.
  const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const update = await run(['apt-get', 'update', '-qq'], { quiet: true, env })
  const { code, output } = await run(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...names], {
    quiet: true,
    env,
  })
  if (code !== 0) fail(`apt-get could not install ${names.join(', ')}:\n\n${update.output}${output}`)
}
