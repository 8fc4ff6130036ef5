import { defaultClientConditions, defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'

// Sibling packages resolve to their TypeScript, so that fast tests need no build.
const source = '@headgate/source'

const tests = ['packages/*/src/**', 'test/**']
const ending = (suffix: string) => tests.map((folder) => `${folder}/*.${suffix}.ts`)

export default defineConfig({
  resolve: { conditions: [source, ...defaultClientConditions] },
  ssr: { resolve: { conditions: [source, ...defaultServerConditions] } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          // A process for each file would cost several times what the tests do. So a test file puts back what it changes.
          isolate: false,
          setupFiles: ['./test/end-timers.ts'],
          include: ending('test'),
          exclude: [...ending('e2e.test'), ...ending('timing.test'), '**/node_modules/**', '**/dist/**'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ending('e2e.test'),
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // A measurement beside other work measures the other work: one file at a time, after everything else.
        extends: true,
        test: {
          name: 'timing',
          include: ending('timing.test'),
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
