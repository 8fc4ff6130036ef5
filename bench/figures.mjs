// Fills the tables of the documents that give figures, from bench/results. `npm run bench` does so at its end; by itself
// `node bench/figures.mjs`, and with --check it only says whether they are as they should be.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { constants } from './model/constants.mjs'
import { costs } from './model/costs.mjs'
import { scaling } from './model/tables.mjs'

const guide = join(import.meta.dirname, '../docs/guide')
const documents = { 'scaling.md': scaling, 'what-limits-cost.md': costs }

/** @returns each document's file, what stands in it, and what should */
export function filled() {
  const measured = constants()
  return Object.entries(documents).map(([name, tablesOf]) => {
    const file = join(guide, name)
    const text = readFileSync(file, 'utf8')
    const tables = tablesOf(measured)
    const wanted = text.replace(
      /(<!-- made by bench\/figures\.mjs: (\S+) -->\n)[\s\S]*?(<!-- end -->)/g,
      (_, head, table, end) => {
        if (tables[table] === undefined) throw new Error(`${file}: there is no table '${table}'`)
        return `${head}${tables[table]}\n${end}`
      },
    )
    return { file, text, wanted }
  })
}

export function fill() {
  for (const { file, text, wanted } of filled()) if (text !== wanted) writeFileSync(file, wanted)
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.argv.includes('--check')) {
    const stale = filled().filter(({ text, wanted }) => text !== wanted)
    for (const { file } of stale) console.error(`${file} is not what bench/results give: node bench/figures.mjs`)
    process.exitCode = stale.length > 0 ? 1 : 0
  } else fill()
}
