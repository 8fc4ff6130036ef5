import { Durations, HTTP_BOUNDS } from './durations.ts'

const OTHER = 'other'
/** Instead of a status: no answer came. */
export const NO_ANSWER = 0

class RouteCounts {
  /** By status; 0 where no answer came. */
  readonly codes: number[] = new Array(600).fill(0)
  readonly durations = new Durations(HTTP_BOUNDS)
}

/** Upstreams' answers by the pattern of the route that led there; patterns come from the rule file only. */
export class UpstreamCounts {
  #routes = new Map<string, RouteCounts>()
  readonly #other = new RouteCounts()

  apply(routes: readonly { readonly path: string }[]): void {
    const before = this.#routes
    this.#routes = new Map(routes.map(({ path }) => [path, before.get(path) ?? new RouteCounts()]))
  }

  answered(route: string, status: number, seconds: number): void {
    const counts = this.#routes.get(route) ?? this.#other
    const code = status >= 100 && status < 600 ? status : NO_ANSWER
    counts.codes[code] = (counts.codes[code] as number) + 1
    counts.durations.observe(seconds)
  }

  *responses(): Iterable<{ readonly route: string; readonly code: string; readonly count: number }> {
    for (const [route, { codes }] of this.#all()) {
      for (const [code, count] of codes.entries()) {
        if (count > 0) yield { route, code: code === NO_ANSWER ? 'none' : String(code), count }
      }
    }
  }

  *durations(): Iterable<readonly [labels: { readonly route: string }, durations: Durations]> {
    for (const [route, { durations }] of this.#all()) yield [{ route }, durations]
  }

  *#all(): Iterable<readonly [string, RouteCounts]> {
    yield* this.#routes
    if (this.#other.codes.some((count) => count > 0)) yield [OTHER, this.#other]
  }
}
