import type { PathSettings, RuleFile } from '@headgate/rules'
import type { Decision, Engine, MatchedRule } from 'headgate'
import type { TrustSettings } from 'headgate/http'
import type { LiveRoutes } from '../forward/live-routes.ts'
import type { Logger } from '../log.ts'
import type { Connections } from './connections.ts'
import type { Waiting } from './permit.ts'
import type { requestFields } from './request-head.ts'

/** How a request ended: forwarded, 429 or 503, 403 by a list, or any other answer of our own. */
export type RequestOutcome = 'allowed' | 'limited' | 'denied' | 'error'

/** Where requests are counted. */
export interface RequestMetrics {
  /** Once a request, when it is known how it ends. */
  request(outcome: RequestOutcome): void
  /** Once a check. */
  decision(decision: Decision, rules: readonly MatchedRule[], seconds: number): void
  /** Once for a rule that answered without a check. */
  listed(rule: string, outcome: 'allowed' | 'denied' | 'error'): void
  /** Once a forwarded request; status 0 where the upstream gave no answer. */
  upstream(route: string, status: number, seconds: number): void
}

/** What all requests share. */
export interface Front {
  /** The rules and routes as they are now. */
  readonly live: { readonly file: RuleFile; readonly routes: LiveRoutes }
  readonly engine: Engine
  readonly fields: ReturnType<typeof requestFields>
  readonly trust: TrustSettings
  readonly paths: PathSettings
  readonly corsOrigins: readonly string[]
  readonly connections: Connections
  readonly metrics: RequestMetrics
  readonly log: Logger
  /** Requests that wait, all together. */
  readonly waiting: Waiting
  /** No new connections: answers end theirs. */
  readonly draining: boolean
}
