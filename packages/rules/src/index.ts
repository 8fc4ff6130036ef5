export { formatListen, isLoopback, type ListenAddress, parseListen } from './listen.ts'
export { keepSettings, type LoadOptions, loadRules, type ParseOptions, parseRules } from './load.ts'
export {
  DEFAULT_PATHS,
  type NormalizedTarget,
  normalizePath,
  type PathException,
  type PathSettings,
} from './paths/normalize.ts'
export { formatProblem, type Problem, RuleFileError } from './problem.ts'
export { needsRestart } from './restart.ts'
export type {
  AdminSettings,
  CompiledLimit,
  CompiledOverride,
  CompiledRule,
  CostHeader,
  Explanation,
  GatewaySettings,
  LimitExplanation,
  Route,
  RuleExplanation,
  RuleFile,
} from './rule-file.ts'
export { jsonSchema } from './schema/json-schema.ts'
export type { SentinelSettings } from './sentinel-url.ts'
export type { Environment } from './source/expand.ts'
export type { StoreSettings } from './store-url.ts'
export { type RuleWatcher, type WatchOptions, watchRules } from './watch.ts'
