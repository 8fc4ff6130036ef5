import { appendFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copyRepository, linkPackages } from './copy.ts'
import { type Finished, run } from './run.ts'

/** File → what is wrong in it. Each must be named by `npm run check`, for its own reason. */
const plants: Record<string, string> = {
  'packages/gateway/src/planted-floating.ts': `import type { Engine } from 'headgate'

export function planted(engine: Engine): void {
  engine.check([])
}
`,
  'packages/gateway/src/planted-misused.ts': `import type { Engine } from 'headgate'

export function planted(engine: Engine): void {
  setTimeout(async () => {
    await engine.check([])
  }, 1)
}
`,
  'packages/gateway/src/planted-deep.ts': `import { ERROR_CODES } from '../../limiter/src/errors.ts'

export const planted = ERROR_CODES
`,
  'packages/gateway/src/planted-deep-type.ts': `export type Planted = import('../../limiter/src/errors.ts').HeadgateError
`,
  'packages/gateway/src/planted-undeclared.ts': `import fc from 'fast-check'

export const planted = fc
`,
  'packages/limiter/src/keys/planted-room.ts': `import { memoryStore } from '../stores/memory.ts'

export const planted = memoryStore
`,
  'packages/limiter/src/planted-cycle.ts': `import { other } from './planted-cycle-other.ts'

export const planted = (): string => other()
`,
  'packages/limiter/src/planted-cycle-other.ts': `import { planted } from './planted-cycle.ts'

export const other = (): string => planted()
`,
  'packages/limiter/src/planted-any.ts': `export const planted = (value: any): string => value
`,
  'packages/limiter/src/planted-format.ts': `export const planted = "double quotes";
`,
  'packages/limiter/src/planted-type.ts': `export const planted: string = 1
`,
  'packages/limiter/src/planted-failing.test.ts': `import { expect, it } from 'vitest'

it('fails', () => expect(1).toBe(2))
`,
}

describe('npm run check, in a clone with planted faults', () => {
  let copy: string
  let check: Finished

  beforeAll(async () => {
    // What is right is none of this test's business, and takes long.
    copy = await copyRepository({ tests: false })
    await linkPackages(copy)
    for (const [file, text] of Object.entries(plants)) await writeFile(join(copy, file), text)
    await appendFile(join(copy, 'packages/limiter/src/script/decide.generated.ts'), '// edited by hand\n')
    check = await run(copy, 'npm', 'run', 'check')
  }, 600_000)

  afterAll(() => rm(copy, { recursive: true, force: true }))

  it('fails', () => {
    expect(check.code).toBe(1)
    expect(check.output).toContain('Failed: lint, types, generated, tests')
  })

  it.each([
    ['a floating promise of a sibling package', 'planted-floating.ts', 'ts/no-floating-promises'],
    ['a promise where none is awaited', 'planted-misused.ts', 'ts/no-misused-promises'],
    ['a deep import', 'planted-deep.ts', 'noRestrictedImports'],
    ['a deep import of a type', 'planted-deep-type.ts', 'ts/consistent-type-imports'],
    ['an import of what the package does not depend on', 'planted-undeclared.ts', 'noUndeclaredDependencies'],
    ['an import from one room of the library to another', 'planted-room.ts', 'noRestrictedImports'],
    ['an import cycle', 'planted-cycle.ts', 'noImportCycles'],
    ['an any', 'planted-any.ts', 'noExplicitAny'],
    ['another format', 'planted-format.ts', 'format'],
    ['a wrong type', 'planted-type.ts', 'TS2322'],
    ['a generated file that was edited', 'decide.generated.ts', 'Stale'],
    ['a failing test', 'planted-failing.test.ts', 'AssertionError'],
  ])('names %s', (_what, file, reason) => {
    expect(reasonsFor(file)).toContain(reason)
  })

  /** What the output says from a mention of the file to the next empty lines' worth of text. */
  function reasonsFor(file: string): string {
    const lines = check.output.split('\n')
    const near = lines.flatMap((line, at) => (line.includes(file) ? lines.slice(at, at + 4) : []))
    return near.join('\n')
  }
})
