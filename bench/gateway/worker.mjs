// The process of one contender (or of the upstream): says its port, ends with its parent.
import { createServer } from 'node:http'
import { answer } from './answer.mjs'

const way = JSON.parse(process.argv[2])
process.once('disconnect', () => process.exit(0))

async function start() {
  if (way.contender === 'upstream') {
    const server = createServer(answer)
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    return server
  }
  const { contenders } = await import('./contenders.mjs')
  return contenders[way.contender](way)
}

const server = await start()
process.send({ port: server.address().port })
