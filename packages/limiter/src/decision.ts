/** Why a check was refused. */
export type Reason =
  /** a limit has too little left now */
  | 'limit'
  /** the key is blocked */
  | 'blocked'
  /** the cost is above the capacity: it can never succeed */
  | 'never'
  /** a list of denied callers */
  | 'list'
  /** the store is away, and a rule asked to refuse then */
  | 'store'

/**
 * Who decided: the store (exact), a lease, the deny cache, this process's share while the store is
 * away, or the rule's policy (`open`, `closed`) alone.
 */
export type Source = 'store' | 'lease' | 'deny-cache' | 'local' | 'policy'

/** One limit's part in a decision. Milliseconds may carry microseconds as their fraction. */
export interface LimitStatus {
  /** The rule that the limit belongs to, where there is one. */
  rule?: string
  name: string
  /** Units a period. */
  limit: number
  /** The most units that can be taken at once. */
  capacity: number
  /** The period in ms; absent for limits that have none. */
  periodMs?: number
  /** Whole units left: capacity less what is used. */
  remaining: number
  /** How long until this limit would admit the same cost; 0 where it admits, Infinity where it never can. */
  retryAfterMs: number
  /** The key is blocked. */
  blocked?: true
  /** How long until `remaining` grows; 0 when unused. */
  nextMs: number
  /** How long until the budget is as if unused, or the window ends; 0 when unused. */
  resetAfterMs: number
}

/** The answer to a check. A refusal is a value, never an exception. */
export interface Decision {
  allowed: boolean
  /** Why not; absent when allowed. */
  reason?: Reason
  /** The rule of the limit that refused. */
  rule?: string
  /** The limit that refused: of several, the one with the longest wait. */
  limitedBy?: string
  /** 0 when allowed; Infinity when it can never succeed. */
  retryAfterMs: number
  /** Wait this long, then proceed (leaky bucket); otherwise 0. */
  delayMs: number
  /** One entry for each enforced limit, in the order of the check. Empty where only a policy answered. */
  limits: LimitStatus[]
  /** The instant of the decision by the store's clock, in ms since the Unix epoch. */
  at: number
  source: Source
  /** True when decided without the store. */
  degraded: boolean
  /** Of what was charged, for a refund. Not enumerable: it is made when it is read. */
  readonly receipt?: string | undefined
  /** Gives the slots of concurrency limits back; present when some were taken. */
  release?(): Promise<void>
  /** Lets those slots last for another ttl. false: one has lapsed, and somebody else may hold it. */
  renew?(): Promise<boolean>
  /** How long those slots last unless they are renewed, in ms. */
  slotMs?: number
  /** How long `acquire` waited, in ms. */
  waitedMs?: number
  /** What shadow rules and candidates say; absent where none was judged. They never change the rest. */
  beside?: readonly BesideDecision[]
}

/** What one shadow rule or candidate says about a check. */
export interface BesideDecision {
  kind: 'shadow' | 'candidate'
  rule?: string
  allowed: boolean
  /** As in {@link Decision}. */
  limitedBy?: string
  retryAfterMs: number
  limits: LimitStatus[]
}

/** What to do about a check when the store does not answer in time. */
export type StoreFailurePolicy =
  /** judge it here, against this instance's share of the budget */
  | 'local'
  /** let it pass */
  | 'open'
  /** refuse it (HTTP: 503) */
  | 'closed'

/** A library caller may also ask for an exception ({@link StoreUnavailableError}). */
export type LibraryFailurePolicy = StoreFailurePolicy | 'throw'
