import { setTimeout as sleep } from 'node:timers/promises'
import { type Decision, type Engine, type EngineEvents, type Limit, tokenBucket } from 'headgate'

/** One decision that was asked for while something went wrong. */
export interface Asked {
  readonly begunMs: number
  tookMs: number
  decision: Decision | undefined
  error: unknown
}

/** So large that it never refuses: what is counted in it is what was charged. */
export const AMPLE: Limit = tokenBucket({ limit: 1_000_000, period: '1h' })

/** Asks an engine steadily, whatever comes back. */
export interface Load {
  readonly asked: readonly Asked[]
  /** Decisions asked for from `ms` (of `performance.now()`) on. */
  since(ms: number): Asked[]
  /** Asks no more, and waits for what is open. */
  stop(): Promise<void>
}

/** @param key of the nth decision */
export function startLoad(engine: Engine, perSecond: number, key: (n: number) => string = () => 'load'): Load {
  const asked: Asked[] = []
  const open = new Set<Promise<void>>()
  const begunMs = performance.now()
  const ask = async () => {
    const each: Asked = { begunMs: performance.now(), tookMs: Number.NaN, decision: undefined, error: undefined }
    asked.push(each)
    try {
      each.decision = await engine.check([{ rule: 'load', name: 'ample', limit: AMPLE, key: key(asked.length) }])
    } catch (error) {
      each.error = error
    }
    each.tookMs = performance.now() - each.begunMs
  }
  const timer = setInterval(() => {
    // A timer that fires late makes up for it, so that the rate holds.
    while (asked.length < ((performance.now() - begunMs) * perSecond) / 1000) {
      const one = ask().finally(() => open.delete(one))
      open.add(one)
    }
  }, 1)
  return {
    asked,
    since: (ms) => asked.filter((each) => each.begunMs >= ms),
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
    },
  }
}

/** What an engine says of its store, in order: `degraded KIND`, `recovered`, `error KIND`. */
export function record(engine: Engine): string[] {
  const events: string[] = []
  engine.on('degraded', ({ kind }) => events.push(`degraded ${kind}`))
  engine.on('recovered', () => events.push('recovered'))
  engine.on('error', ({ kind }: EngineEvents['error']) => events.push(`error ${kind}`))
  return events
}

/** Waits until it is so. @throws Error that names `what` when it takes too long */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ${limitMs} ms`)
    await sleep(2)
  }
}

/** The value below which this share of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
