import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { FixedWindowOptions, TokenBucketOptions } from 'headgate'
import { until } from './load.ts'

export type InstanceRule =
  | ({ algorithm: 'token-bucket' } & TokenBucketOptions)
  | ({ algorithm: 'fixed-window' } & FixedWindowOptions)

export interface InstanceOptions {
  readonly url: string
  /** How many processes share the budgets. */
  readonly instances: number
  /** Checks of each rule. */
  readonly perSecond: number
  readonly rules: Readonly<Record<string, InstanceRule>>
}

export interface InstanceResult {
  /** By rule, by source. */
  readonly admitted: Readonly<Record<string, { readonly store: number; readonly local: number }>>
  readonly asked: number
  /** When it was without its store: from and to, in ms since 1970. */
  readonly away: readonly (readonly [number, number])[]
  readonly events: { readonly degraded: number; readonly recovered: number; readonly error: number }
  /** Checks that rejected. */
  readonly failures: number
  /** Unhandled rejections and exceptions. */
  readonly crashes: number
}

/** A process that enforces rules of its own accord (see `instance.mjs`); it runs the build. */
export interface Instance {
  /** Ends it. @throws Error when it did not end well */
  stop(): Promise<InstanceResult>
}

export async function startInstance(options: InstanceOptions): Promise<Instance> {
  const file = fileURLToPath(new URL('instance.mjs', import.meta.url))
  const child = spawn(process.execPath, [file, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  await until('an instance', () => output.startsWith('ready'), 20_000)
  return {
    async stop() {
      child.stdin.end()
      const code = await ended
      if (code !== 0) throw new Error(`an instance ended with ${code}: ${output}`)
      return JSON.parse(output.slice('ready\n'.length)) as InstanceResult
    },
  }
}

/** For how long some, but not all, were without their store, in ms. */
export function partlyAwayMs(results: readonly InstanceResult[]): number {
  const edges = results.flatMap(({ away }) =>
    away.flatMap(([from, to]) => [
      { ms: from, by: 1 },
      { ms: to, by: -1 },
    ]),
  )
  edges.sort((a, b) => a.ms - b.ms)
  let count = 0
  let partly = 0
  for (const [i, edge] of edges.entries()) {
    count += edge.by
    const next = edges[i + 1]
    if (next !== undefined && count > 0 && count < results.length) partly += next.ms - edge.ms
  }
  return partly
}
