import {
  Histogram,
  type HistogramConfiguration,
  type MetricObjectWithValues,
  type MetricValueWithName,
} from 'prom-client'

/** Durations in seconds, counted by bucket. Observing one touches three numbers and nothing else. */
export class Durations {
  readonly bounds: readonly number[]
  /** How many fell into each bucket (not cumulated); the last one has no upper bound. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(seconds: number): void {
    const { bounds, counts } = this
    let i = 0
    while (i < bounds.length && seconds > (bounds[i] as number)) i++
    counts[i] = (counts[i] as number) + 1
    this.sum += seconds
  }
}

/** A decision takes from some µs (in this process) to its deadline. */
export const DECISION_BOUNDS = [
  0.00001, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
]

/** The bounds that OpenTelemetry advises for HTTP. */
export const HTTP_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

type Labels = Record<string, string>
type Values<L extends string> = MetricObjectWithValues<MetricValueWithName<L>>

/** A histogram that prom-client shows but does not count: it reads {@link Durations} when it is scraped. */
export class DurationHistogram<L extends string = string> extends Histogram<L> {
  readonly #series: () => Iterable<readonly [labels: Labels, durations: Durations]>
  readonly #shown: Pick<Values<L>, 'name' | 'help'>

  constructor(
    configuration: HistogramConfiguration<L>,
    series: () => Iterable<readonly [labels: Labels, durations: Durations]>,
  ) {
    super(configuration)
    this.#series = series
    this.#shown = { name: configuration.name, help: configuration.help }
  }

  override async get(): Promise<Values<L>> {
    const values: MetricValueWithName<L>[] = []
    for (const [labels, durations] of this.#series()) {
      const push = (suffix: string, value: number, more: Labels = {}) =>
        values.push({ metricName: this.#shown.name + suffix, labels: { ...more, ...labels } as never, value })
      let cumulated = 0
      durations.counts.forEach((count, i) => {
        cumulated += count
        push('_bucket', cumulated, { le: String(durations.bounds[i] ?? '+Inf') })
      })
      push('_sum', durations.sum)
      push('_count', cumulated)
    }
    return { ...this.#shown, type: 'histogram' as never, aggregator: 'sum', values, collect: () => {} }
  }

  /** What the registry calls when it writes text. */
  getForPromString(): Promise<Values<L>> {
    return this.get()
  }
}
