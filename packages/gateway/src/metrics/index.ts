import type { Decision, Engine, MatchedRule } from 'headgate'
import type { Registry } from 'prom-client'
import type { NamedRule } from './decision-counts.ts'
import { exposition } from './exposition.ts'
import { Numbers, type RequestOutcome } from './numbers.ts'

export type { RequestOutcome } from './numbers.ts'
export { NO_ANSWER } from './upstream-counts.ts'

/** The part of a rule file that metrics need. */
export interface MeasuredRules {
  readonly version: string
  readonly rules: readonly NamedRule[]
  readonly gateway?: { readonly routes: readonly { readonly path: string }[] } | undefined
}

export interface MetricsOptions {
  /** Headgate's version. */
  readonly version: string
  /** The wall clock in ms. */
  readonly nowMs?: () => number
}

/**
 * What the gateway counts, and its text for Prometheus. Requests touch plain numbers only; prom-client
 * reads them when it is scraped. Labels are names of the rule file and words of ours, never anything
 * that a caller sent.
 */
export class Metrics {
  readonly #numbers = new Numbers()
  readonly #registry: Registry
  readonly #nowMs: () => number

  constructor({ version, nowMs = Date.now }: MetricsOptions) {
    this.#registry = exposition(this.#numbers, version)
    this.#nowMs = nowMs
  }

  /** Of the text that {@link render} gives. */
  get contentType(): string {
    return this.#registry.contentType
  }

  /** Once a request, when it is known how it ends. */
  request(outcome: RequestOutcome): void {
    this.#numbers.requests[outcome] += 1
  }

  /**
   * Once a check.
   * @param rules the rules that matched
   * @param seconds from asking the engine until its answer
   */
  decision(decision: Decision, rules: readonly MatchedRule[], seconds: number): void {
    this.#numbers.decisionTimes.observe(seconds)
    this.#numbers.decisions.decided(decision, rules)
  }

  /** Once for a rule that answered without a check: a list, or (`error`) a dimension that the request lacks. */
  listed(rule: string, outcome: 'allowed' | 'denied' | 'error'): void {
    this.#numbers.decisions.listed(rule, outcome)
  }

  /**
   * Once a forwarded request.
   * @param route its route's pattern
   * @param status the upstream's answer; `NO_ANSWER` where none came
   * @param seconds from forwarding until the head of the answer, or until it was given up
   */
  upstream(route: string, status: number, seconds: number): void {
    this.#numbers.upstreams.answered(route, status, seconds)
  }

  /** Counts what an engine reports of its store. @returns how to stop */
  watch(engine: Pick<Engine, 'degraded' | 'strandedUnits' | 'on'>): () => void {
    this.#numbers.degraded = () => engine.degraded
    this.#numbers.strandedUnits = () => engine.strandedUnits
    const { storeErrors, storeTimes } = this.#numbers
    const offError = engine.on('error', ({ kind, count }) => {
      const label = Object.hasOwn(storeErrors, kind) ? kind : 'other'
      storeErrors[label] = (storeErrors[label] as number) + count
    })
    const offTimes = engine.on('roundTrip', ({ durationMs }) => storeTimes.observe(durationMs / 1000))
    return () => {
      offError()
      offTimes()
    }
  }

  /** These rules are enforced from now on: at the start, and after each reload. */
  apply({ version, rules, gateway }: MeasuredRules): void {
    const numbers = this.#numbers
    numbers.rulesVersion = version
    numbers.lastLoadMs = this.#nowMs()
    numbers.lastReloadSuccessful = true
    numbers.decisions.apply(rules)
    numbers.upstreams.apply(gateway?.routes ?? [])
  }

  /** Once a reload of the rule file; after a good one the rules are also applied. */
  reload(result: 'success' | 'failure'): void {
    this.#numbers.reloads[result] += 1
    this.#numbers.lastReloadSuccessful = result === 'success'
  }

  /** Everything in Prometheus's text format. */
  render(): Promise<string> {
    return this.#registry.metrics()
  }
}
