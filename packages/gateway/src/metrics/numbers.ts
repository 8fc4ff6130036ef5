import type { StoreErrorKind } from 'headgate'
import { DecisionCounts } from './decision-counts.ts'
import { DECISION_BOUNDS, Durations } from './durations.ts'
import { UpstreamCounts } from './upstream-counts.ts'

/** How a request ended: forwarded, 429 or 503 by a decision, 403 by a list, or any other answer of our own. */
export type RequestOutcome = 'allowed' | 'limited' | 'denied' | 'error'

const STORE_ERRORS: Record<StoreErrorKind | 'garbage' | 'give-back' | 'subscription', number> = {
  timeout: 0,
  connection: 0,
  auth: 0,
  permission: 0,
  loading: 0,
  readonly: 0,
  full: 0,
  busy: 0,
  cluster: 0,
  stale: 0,
  script: 0,
  garbage: 0,
  'give-back': 0,
  subscription: 0,
  other: 0,
}

/** Everything that is counted, as plain numbers: what requests touch, and what a scrape reads. */
export class Numbers {
  readonly requests: Record<RequestOutcome, number> = { allowed: 0, limited: 0, denied: 0, error: 0 }
  readonly decisions = new DecisionCounts()
  readonly decisionTimes = new Durations(DECISION_BOUNDS)
  /** Of batches, each of which carries many checks. */
  readonly storeTimes = new Durations(DECISION_BOUNDS)
  readonly upstreams = new UpstreamCounts()
  readonly storeErrors: Record<string, number> = { ...STORE_ERRORS }
  /** Whether decisions are made without the store. */
  degraded: () => boolean = () => false
  /** Units that were taken ahead and are not used. */
  strandedUnits: () => number = () => 0
  readonly reloads = { success: 0, failure: 0 }
  lastReloadSuccessful = true
  /** When rules were last loaded, in ms since the Unix epoch. */
  lastLoadMs = 0
  rulesVersion = ''
}
