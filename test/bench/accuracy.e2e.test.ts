import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { rows } from '../docs/markdown.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The whole way, with Headgate alone: the peers are packages of bench/, which `npm test` does not install. */
it('npm run accuracy plays a short trace, and finds nothing of Headgate over or wrongly refused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-accuracy-'))
  try {
    const out = join(folder, 'accuracy.md')
    const options = ['--quick', '--only', 'headgate', '--trace', 'edges,weighted', '--out', out]
    await promisify(execFile)(process.execPath, [join(ROOT, 'bench/accuracy/main.mjs'), ...options])
    const document = { name: out, prose: await readFile(out, 'utf8'), blocks: [], headings: [] }
    for (const title of ['Bursts at the edges of windows', 'Weighted costs']) {
      const [head, ...played] = rows(document, title)
      expect(head?.slice(0, 4)).toEqual(['limiter', 'passed', 'over', 'wrongly refused'])
      expect(played).toHaveLength(7)
      for (const [limiter, passed, over, wrong] of played) {
        expect([limiter, over, wrong]).toEqual([limiter, '0', '0'])
        expect(passed).toMatch(/^[1-9]\d* of \d+$/)
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
