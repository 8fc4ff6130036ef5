export { type ConcurrencyOptions, concurrency } from './algorithms/concurrency/index.ts'
export { type FixedWindowOptions, fixedWindow } from './algorithms/fixed-window/index.ts'
export { type LeakyBucketOptions, leakyBucket } from './algorithms/leaky-bucket/index.ts'
export { type SlidingLogOptions, slidingLog } from './algorithms/sliding-log/index.ts'
export { type SlidingWindowOptions, slidingWindow } from './algorithms/sliding-window/index.ts'
export { type TokenBucketOptions, tokenBucket } from './algorithms/token-bucket/index.ts'
export type { Clock } from './clock.ts'
export type {
  BesideDecision,
  Decision,
  LibraryFailurePolicy,
  LimitStatus,
  Reason,
  Source,
  StoreFailurePolicy,
} from './decision.ts'
export type { DenyCacheOptions } from './deny-cache.ts'
export { type Duration, durationUs } from './duration.ts'
export { createEngine, type Engine, type EngineOptions } from './engine.ts'
export { ERROR_CODES, type ErrorCode, HeadgateError, InvalidArgumentError, StoreUnavailableError } from './errors.ts'
export type { EngineEvents } from './events.ts'
export { EncodedKey, encodeParts, encodeValue, hashValue, NAME } from './keys/index.ts'
export type { Limit, LimitNumbers, State } from './limit.ts'
export { createLimiter, type Keys, type Limiter, type LimiterCheckOptions, type LimiterOptions } from './limiter.ts'
export type { AcquireOptions } from './line.ts'
export type {
  BlockOptions,
  Committed,
  Grant,
  RefundOptions,
  Reservation,
  Reserved,
  ReserveOptions,
} from './operations.ts'
export { refuseUnknown } from './options.ts'
export type { Accuracy, CheckItem } from './part.ts'
export type { MatchedRule, RuleMatch, RuleRequest, RuleSet } from './rule-set.ts'
export {
  type ChangeListener,
  type Check,
  type Follower,
  type LocalStore,
  type Operation,
  type OperationName,
  type Part,
  type RemoteStore,
  type RoundTripReport,
  type Store,
  type StoreErrorKind,
  StoreFault,
  type StoreReport,
  type Ticket,
  type Verdict,
} from './store.ts'
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from './stores/memory.ts'
export type { CheckOptions } from './ways.ts'
export { RateLimitedError, rateLimited, type WrapOptions } from './wrap.ts'
