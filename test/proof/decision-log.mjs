// Loaded into a gateway with `node --import`: writes every decision, as the diagnostics channel tells it, to
// the file that DECISION_LOG names, one JSON array a line: [at µs, allowed, user, rule, source, limitedBy].
import { subscribe } from 'node:diagnostics_channel'
import { createWriteStream } from 'node:fs'

const log = createWriteStream(process.env.DECISION_LOG)

subscribe('headgate:decision', ({ decision, items, peek }) => {
  if (peek) return
  const user = items.find((item) => item.name === 'user')?.value
  const atUs = Math.round(decision.at * 1000)
  const line = [atUs, decision.allowed, user, items[0]?.rule, decision.source, decision.limitedBy ?? null]
  log.write(`${JSON.stringify(line)}\n`)
})
