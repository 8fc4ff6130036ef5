// Newer servers than the system's, for the suites that run on all: Redis 8 and Valkey 8, from the packages of Debian 13,
// unpacked beside the system and never installed. On other systems, or without a mirror, there are none.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isOnPath, root, run } from './setup.mjs'

const release = 'trixie'
const folder = join(root, '.cache/servers')
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Name of what is started → the program of its package. `test/redis-servers.ts` starts them by these names. */
const programs = { 'redis-8': 'redis-server', 'valkey-8': 'valkey-server' }
const packages = ['redis-server', 'redis-tools', 'valkey-server', 'valkey-tools']
/** What those are linked with: they run with their own release's, whatever the system's are. */
const libraries = (
  'libc6 libjemalloc2 liblua5.1-0 liblzf1 libssl3t64 libsystemd0 libatomic1 libgcc-s1 libcap2 libstdc++6 ' +
  'libzstd1 liblzma5 libgcrypt20 liblz4-1 libgpg-error0 lua-bitop lua-cjson'
).split(' ')

/** @returns {Promise<string | undefined>} why there are none */
export async function getNewerServers() {
  if (Object.keys(programs).every((name) => existsSync(join(folder, name)))) return
  const mirror = debianMirror()
  if (mirror === undefined || !isOnPath('apt-get') || !isOnPath('dpkg-deb')) return 'this is no Debian with a mirror'
  const work = `${folder}.${process.pid}`
  try {
    for (const each of ['lists/partial', 'cache/archives/partial', 'debs', 'root'])
      mkdirSync(join(work, each), { recursive: true })
    await unpack(work, mirror)
    writeStarters(work)
    rmSync(folder, { recursive: true, force: true })
    renameSync(work, folder)
    for (const name of Object.keys(programs)) await must([join(folder, name), '--version'])
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    return error.message
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** The mirror that this system takes its own packages from. */
function debianMirror() {
  const places = [
    '/etc/apt/sources.list',
    ...['sources.list.d', 'mirrors'].flatMap((name) => filesIn(`/etc/apt/${name}`)),
  ]
  const text = places.map((place) => (existsSync(place) ? readFileSync(place, 'utf8') : '')).join('\n')
  return /^[^#\n]*?(https?:\/\/\S+\/debian)\/?(?=\s|$)/m.exec(text)?.[1]
}

function filesIn(place) {
  return existsSync(place) ? readdirSync(place).map((name) => join(place, name)) : []
}

async function unpack(work, mirror) {
  writeFileSync(join(work, 'sources.list'), `deb [signed-by=${keyring}] ${mirror} ${release} main\n`)
  const settings = {
    'Dir::Etc::SourceList': join(work, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': join(work, 'lists'),
    'Dir::Cache': join(work, 'cache'),
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
  }
  const apt = ['apt-get', '-qq', ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])]
  await must([...apt, 'update'])
  const debs = join(work, 'debs')
  await must([...apt, 'download', ...packages, ...libraries], debs)
  for (const deb of filesIn(debs)) await must(['dpkg-deb', '-x', deb, join(work, 'root')])
  for (const each of ['lists', 'cache', 'debs', 'sources.list']) rmSync(join(work, each), { recursive: true })
}

/** A program for each server that runs it by the loader and with the libraries of its own release. */
function writeStarters(work) {
  const files = readdirSync(join(work, 'root'), { recursive: true }).map((name) => join('root', name))
  const find = (pattern) => {
    const found = files.find((name) => pattern.test(name))
    if (found === undefined) throw new Error(`the packages hold no ${pattern.source}`)
    return `"$here/${found}"`
  }
  const libs = dirname(find(/\/libc\.so\.6$/).slice(1))
  for (const [name, program] of Object.entries(programs)) {
    const start = `exec ${find(/\/ld-linux-[^/]*\.so\.\d$/)} --library-path "${libs}:${libs}/systemd" --argv0 ${program}`
    const text = `#!/bin/sh\nhere=$(dirname "$0")\n${start} ${find(new RegExp(`/bin/${program}$`))} "$@"\n`
    writeFileSync(join(work, name), text)
    chmodSync(join(work, name), 0o755)
  }
}

async function must(argv, cwd = root) {
  const { code, output } = await run(argv, { quiet: true, cwd, timeoutMs: 120_000 })
  if (code !== 0) throw new Error(`${argv[0]} failed: ${output.trim().split('\n').at(-1)}`)
}
