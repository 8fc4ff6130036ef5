// What the quickstart needs of curl, for machines that have none: -i, -H "name: value", and [1-6] in an address.
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    include: { type: 'boolean', short: 'i' },
    header: { type: 'string', short: 'H', multiple: true, default: [] },
  },
})
// As with curl, whoever reads may go: `curl.mjs … | head -1`.
process.stdout.on('error', (error) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})
const headers = values.header.map((line) => line.split(/:\s*/, 2))
const [, start, from = 1, to = 1, end = ''] = /^([^[]*)(?:\[(\d+)-(\d+)\](.*))?$/.exec(positionals[0])

for (let call = Number(from); call <= Number(to); call++) {
  const response = await fetch(start + (positionals[0].includes('[') ? call : '') + end, { headers })
  if (values.include) {
    console.log(`HTTP/1.1 ${response.status} ${response.statusText}`)
    for (const [name, value] of response.headers) console.log(`${name}: ${value}`)
    console.log()
  }
  process.stdout.write(await response.text())
}
