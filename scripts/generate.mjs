// Writes the committed files that are made from others; `--check` only says which of them are stale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createServer, defaultServerConditions } from 'vite'
import { generated as generatedLua } from '../packages/limiter/scripts/assemble-lua.mjs'
import { fail, root } from './setup.mjs'

const files = { ...generatedLua(), ...(await generatedSchema()) }
const stale = Object.keys(files).filter((file) => !existsSync(file) || readFileSync(file, 'utf8') !== files[file])
const names = stale.map((file) => relative(root, file)).join(', ')

if (stale.length === 0) console.log(`${Object.keys(files).length} generated files are fresh`)
else if (process.argv.includes('--check')) fail(`Stale: ${names}. Run: npm run generate`)
else {
  for (const file of stale) writeFileSync(file, files[file])
  console.log(`Wrote ${names}`)
}

// Through Vite, so that it comes from the sources as they are, not from the last build.
async function generatedSchema() {
  const conditions = ['@headgate/source', ...defaultServerConditions]
  const server = await createServer({
    root,
    configFile: false,
    logLevel: 'error',
    appType: 'custom',
    server: { middlewareMode: true, watch: null, ws: false },
    optimizeDeps: { noDiscovery: true },
    ssr: { resolve: { conditions } },
  })
  try {
    const { jsonSchema } = await server.ssrLoadModule('/packages/rules/src/index.ts')
    const text = `${JSON.stringify(jsonSchema(), null, 2)}\n`
    return { [join(root, 'packages/rules/headgate.schema.json')]: text }
  } finally {
    await server.close()
  }
}
