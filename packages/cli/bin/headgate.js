#!/usr/bin/env node
// Committed, because npm links a bin only when its file is there at install, before any build.
import { existsSync } from 'node:fs'

const built = new URL('../dist/index.js', import.meta.url)
if (!existsSync(built)) {
  console.error('headgate: not built yet. In a checkout of the repository, run: npm run build')
  process.exit(1)
}
const { main } = await import(built.href).catch((error) => {
  console.error(`headgate: cannot be loaded (${error.message.split('\n')[0]}). Install it again, or run: npm ci`)
  process.exit(1)
})
process.exitCode = await main(process.argv.slice(2))
