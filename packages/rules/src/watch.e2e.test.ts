import { execFileSync } from 'node:child_process'
import fs, { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadRules } from './load.ts'
import { type RuleWatcher, watchRules } from './watch.ts'

const rule = (name: string) => `rules: [{ name: ${name}, description: d, limits: [{ by: ip, limit: 5/s }] }]\n`

let folder: string
let file: string
let watcher: RuleWatcher | undefined
let loaded: string[]
let failed: string[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-watch-'))
  file = join(folder, 'headgate.yaml')
  await writeFile(file, rule('first'))
  loaded = []
  failed = []
})

afterEach(async () => {
  await watcher?.close()
  watcher = undefined
  await rm(folder, { recursive: true })
})

async function follow(options: { pollMs?: number } = {}): Promise<void> {
  watcher = watchRules(file, {
    current: await loadRules(file),
    settleMs: 30,
    pollMs: 60_000,
    onLoad: ({ rules }) => loaded.push(rules[0]?.name ?? ''),
    onError: (error) => failed.push(String(error)),
    ...options,
  })
  // The first reload waits until the directory is watched.
  await watcher.reload()
  loaded = []
}

const until = (what: () => void) => vi.waitFor(what, { timeout: 5000, interval: 10 })
const quiet = () => new Promise((resolve) => setTimeout(resolve, 300))

describe('a watched rule file', () => {
  it('is loaded again when it is written', async () => {
    await follow()
    await writeFile(file, rule('second'))
    await until(() => expect(loaded).toEqual(['second']))
  })

  it('is loaded again when an editor replaces it', async () => {
    await follow()
    await rename(file, `${file}~`)
    await writeFile(`${file}.new`, rule('second'))
    await rename(`${file}.new`, file)
    await until(() => expect(loaded).toEqual(['second']))
    await writeFile(`${file}.new`, rule('third'))
    await rename(`${file}.new`, file)
    await until(() => expect(loaded).toEqual(['second', 'third']))
    expect(failed).toEqual([])
  })

  it('is loaded again when the symlink of its folder is swapped, as in a ConfigMap', async () => {
    for (const [version, name] of [
      ['..1', 'first'],
      ['..2', 'second'],
      ['..3', 'third'],
    ] as const) {
      await mkdir(join(folder, version))
      await writeFile(join(folder, version, 'headgate.yaml'), rule(name))
    }
    await rm(file)
    await symlink('..1', join(folder, '..data'))
    await symlink('..data/headgate.yaml', file)
    await follow()
    for (const [version, expected] of [
      ['..2', ['second']],
      ['..3', ['second', 'third']],
    ] as const) {
      await symlink(version, join(folder, '..data_tmp'))
      await rename(join(folder, '..data_tmp'), join(folder, '..data'))
      await until(() => expect(loaded).toEqual(expected))
    }
    expect(failed).toEqual([])
  })

  it('is followed through a link into another folder', async () => {
    const other = await mkdtemp(join(tmpdir(), 'headgate-other-'))
    await writeFile(join(other, 'real.yaml'), rule('first'))
    await rm(file)
    await symlink(join(other, 'real.yaml'), file)
    await follow()
    await writeFile(join(other, 'real.yaml'), rule('second'))
    await until(() => expect(loaded).toEqual(['second']))
    await rm(other, { recursive: true })
  })

  it('that is broken is told once, and replaces nothing', async () => {
    await follow()
    await writeFile(file, 'rules: [{ nam: a }]')
    await until(() => expect(failed).toHaveLength(1))
    expect(failed[0]).toContain('did you mean name')
    await utimes(file, new Date(), new Date())
    await quiet()
    expect([loaded, failed.length]).toEqual([[], 1])
    await writeFile(file, rule('second'))
    await until(() => expect(loaded).toEqual(['second']))
  })

  it('that is gone is told once, and followed when it is back', async () => {
    await follow()
    await rm(file)
    await until(() => expect(failed).toHaveLength(1))
    expect(failed[0]).toContain('there is no such file')
    await writeFile(join(folder, 'else'), '')
    await quiet()
    expect(failed).toHaveLength(1)
    await writeFile(file, rule('second'))
    await until(() => expect(loaded).toEqual(['second']))
  })

  it('that is only touched, or back as it was, is no news', async () => {
    await follow()
    await utimes(file, new Date(), new Date())
    await writeFile(file, rule('first'))
    await quiet()
    expect([loaded, failed]).toEqual([[], []])
  })

  it('is found changed by looking, where the system tells nothing', async () => {
    const current = await loadRules(file)
    await writeFile(file, rule('second'))
    watcher = watchRules(file, {
      current,
      settleMs: 5,
      pollMs: 20,
      onLoad: ({ rules }) => loaded.push(rules[0]?.name ?? ''),
      onError: () => {},
    })
    await until(() => expect(loaded).toEqual(['second']))
  })

  it('is loaded on reload also where it is the same, and its errors are told', async () => {
    await follow()
    await watcher?.reload()
    expect(loaded).toEqual(['first'])
    await writeFile(file, 'rules: 5')
    await watcher?.reload()
    expect(failed).toHaveLength(1)
  })

  it('tells nothing any more once closed, and keeps nothing alive', async () => {
    await follow()
    await watcher?.close()
    await writeFile(file, rule('second'))
    await watcher?.reload()
    await quiet()
    expect([loaded, failed]).toEqual([[], []])
  })

  it('that becomes a pipe is told once, does not block, and is followed when it is a file again', async () => {
    await follow()
    await rm(file)
    execFileSync('mkfifo', [file])
    await until(() => expect(failed).toHaveLength(1))
    expect(failed[0]).toContain('is no regular file')
    await watcher?.reload()
    expect(failed).toHaveLength(2)
    await rm(file)
    await writeFile(file, rule('second'))
    await until(() => expect(loaded).toEqual(['second']))
  })

  it('closes at once, also while the file system does not answer', async () => {
    await follow()
    const read = vi.spyOn(fs, 'open').mockReturnValue(new Promise(() => {}))
    syncBuiltinESMExports()
    void watcher?.reload()
    await until(() => expect(read).toHaveBeenCalled())
    await watcher?.close()
    read.mockRestore()
    syncBuiltinESMExports()
    expect([loaded, failed]).toEqual([[], []])
  })

  it('survives what the listener throws', async () => {
    watcher = watchRules(file, {
      settleMs: 5,
      onLoad: () => {
        throw new Error('does not fit')
      },
      onError: (error) => failed.push(String(error)),
    })
    await watcher.reload()
    expect(failed).toEqual(['Error: does not fit'])
  })
})
