import { Counter, Gauge, Registry } from 'prom-client'
import { DurationHistogram, type Durations } from './durations.ts'
import type { Numbers } from './numbers.ts'

type Labels = Readonly<Record<string, string>>
type Series = () => Iterable<readonly [labels: Labels, value: number]>

/** The metrics that show these numbers, read anew at each scrape. */
export function exposition(numbers: Numbers, version: string): Registry {
  const registry = new Registry()
  exposeRequests(registry, numbers)
  exposeStore(registry, numbers)
  exposeUpstreams(registry, numbers)
  exposeRules(registry, numbers)
  const build = { version, node: process.version }
  gauge(registry, 'headgate_build_info', 'Always 1; the labels say what is running.', ['version', 'node'], () => [
    [build, 1],
  ])
  return registry
}

function exposeRequests(registry: Registry, { requests, decisions, decisionTimes }: Numbers): void {
  counter(registry, 'headgate_requests_total', 'Requests by how they ended.', ['outcome'], () => {
    return byKey('outcome', requests)
  })
  const matched = 'Matched rules by what became of them; limit is the one that refused, or empty.'
  counter(registry, 'headgate_decisions_total', matched, ['rule', 'limit', 'outcome', 'source'], function* () {
    for (const { count, ...labels } of decisions.counts()) yield [labels, count]
  })
  histogram(registry, 'headgate_decision_duration_seconds', 'Time from asking for a decision to having it.', [], () => [
    [{}, decisionTimes],
  ])
  const ratio = 'The share left of a limit that all callers share, from 0 to 1, when it was last judged.'
  gauge(registry, 'headgate_remaining_ratio', ratio, ['rule', 'limit'], function* () {
    for (const { ratio, ...labels } of decisions.remaining()) yield [labels, ratio]
  })
}

function exposeStore(registry: Registry, numbers: Numbers): void {
  const trip = 'Time from sending a batch of checks to the store until its answer.'
  histogram(registry, 'headgate_store_duration_seconds', trip, [], () => [[{}, numbers.storeTimes]])
  counter(registry, 'headgate_store_errors_total', 'What went wrong with the store, by kind.', ['kind'], () => {
    return byKey('kind', numbers.storeErrors)
  })
  gauge(registry, 'headgate_degraded', '1 while decisions are made without the store.', [], () => [
    [{}, Number(numbers.degraded())],
  ])
  const stranded = 'Units that this process has taken ahead from the store and not used.'
  gauge(registry, 'headgate_lease_stranded_units', stranded, [], () => [[{}, numbers.strandedUnits()]])
}

function exposeUpstreams(registry: Registry, { upstreams }: Numbers): void {
  const answers = 'Answers of upstreams by route and status; none: no answer came.'
  counter(registry, 'headgate_upstream_responses_total', answers, ['route', 'code'], function* () {
    for (const { count, ...labels } of upstreams.responses()) yield [labels, count]
  })
  const time = 'Time from forwarding a request to the head of its answer.'
  histogram(registry, 'headgate_upstream_duration_seconds', time, ['route'], () => upstreams.durations())
}

function exposeRules(registry: Registry, numbers: Numbers): void {
  gauge(registry, 'headgate_rules_info', 'Always 1; version names the rules in force.', ['version'], () => [
    [{ version: numbers.rulesVersion }, 1],
  ])
  counter(registry, 'headgate_rules_reload_total', 'Reloads of the rule file by result.', ['result'], () => {
    return byKey('result', numbers.reloads)
  })
  gauge(registry, 'headgate_rules_last_reload_successful', '0 while the rule file on disk is refused.', [], () => [
    [{}, Number(numbers.lastReloadSuccessful)],
  ])
  const loaded = 'When rules were last loaded, at the start too, since the Unix epoch.'
  gauge(registry, 'headgate_rules_last_reload_success_timestamp_seconds', loaded, [], () => [
    [{}, numbers.lastLoadMs / 1000],
  ])
}

function byKey(label: string, counts: Readonly<Record<string, number>>): [Labels, number][] {
  return Object.entries(counts).map(([key, count]) => [{ [label]: key }, count])
}

function counter(registry: Registry, name: string, help: string, labelNames: string[], series: Series): void {
  const metric = new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      metric.reset()
      for (const [labels, value] of series()) metric.inc(labels, value)
    },
  })
}

function gauge(registry: Registry, name: string, help: string, labelNames: string[], series: Series): void {
  const metric = new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      metric.reset()
      for (const [labels, value] of series()) metric.set(labels, value)
    },
  })
}

type TimeSeries = () => Iterable<readonly [labels: Labels, durations: Durations]>

function histogram(registry: Registry, name: string, help: string, labelNames: string[], series: TimeSeries): void {
  registry.registerMetric(new DurationHistogram({ name, help, labelNames, registers: [] }, series))
}
