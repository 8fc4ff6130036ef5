export { ipMatcher } from './cidr.ts'
export {
  type ClientAddress,
  clientAddress,
  type TrustOptions,
  type TrustSettings,
  trustSettings,
} from './client-address.ts'
export { type Field, RATE_LIMIT_FIELDS, rateLimitFields, retryAfterSeconds } from './fields.ts'
export { ipKey, UNIX } from './ip-key.ts'
export { PROBLEM_TYPE, type ProblemStatus, problem, problemBody, refusalStatus } from './problem.ts'
