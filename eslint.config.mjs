// Biome formats and lints; this is only for what needs types across packages: Biome does not see that
// a sibling package's call returns a promise.
import tseslint from 'typescript-eslint'

export default [
  { ignores: ['**/dist/**', '**/coverage/**', '**/*.generated.ts'] },
  {
    files: ['packages/*/src/**/*.ts', 'test/**/*.ts', 'examples/**/*.ts'],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname },
    },
    plugins: { ts: tseslint.plugin },
    rules: {
      'ts/no-floating-promises': 'error',
      'ts/no-misused-promises': 'error',
      // `import('../../limiter/src/x.ts').Type` would walk around the rules against deep imports.
      'ts/consistent-type-imports': ['error', { disallowTypeAnnotations: true, fixStyle: 'separate-type-imports' }],
    },
  },
]
