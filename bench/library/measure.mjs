import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const worker = join(import.meta.dirname, 'worker.mjs')

/**
 * One run: a fresh process for each of `processes`, Redis emptied before, its CPU time taken around the
 * timed part, which is the only thing that happens then.
 * @param spec what the worker reads
 * @param {{ processes?: number, execArgv?: string[], inspect?: () => Promise<unknown> }} [options]
 *   inspect: looked at when the workers are ready, instead of timed work
 */
export async function measure(redis, spec, { processes = 1, execArgv = [], inspect } = {}) {
  await redis.flush()
  const children = Array.from({ length: processes }, () => start({ ...spec, port: redis.port }, execArgv))
  await Promise.all(children.map((child) => child.next()))
  const inspected = await inspect?.()
  const before = [await redis.wireBytes(), await redis.cpuUs()]
  const results = inspect ? [] : await Promise.all(children.map((child) => child.answer()))
  const redisUs = (await redis.cpuUs()) - before[1]
  const wireBytes = (await redis.wireBytes()) - before[0]
  await Promise.all(children.map((child) => child.end()))
  return inspect ? inspected : { results, redisUs, wireBytes }
}

function start(spec, execArgv) {
  const child = fork(worker, [], { execArgv })
  const exited = once(child, 'exit').then(([code]) => {
    if (code !== 0) throw new Error(`the process of ${spec.contender} ended with code ${code}`)
  })
  // Until somebody waits for it.
  exited.catch(() => undefined)
  const next = async () => {
    const [message] = await Promise.race([once(child, 'message'), exited.then(() => [])])
    if (message === undefined) throw new Error(`the process of ${spec.contender} ended early`)
    return message
  }
  child.send(spec)
  return {
    next,
    answer() {
      const answer = next()
      child.send('go')
      return answer
    },
    end() {
      child.send('done')
      return exited
    },
  }
}
