import type { PathSettings } from './normalize.ts'
import { type Pattern, split } from './pattern.ts'

/** The segment of a path that a pattern names `:name`, as it stands there; undefined where the pattern has none. */
export function pathParameter(
  pattern: Pattern,
  name: string,
  path: string,
  settings: PathSettings,
): string | undefined {
  const index = pattern.segments.findIndex((segment) => segment.kind === 'param' && segment.name === name)
  return index < 0 ? undefined : split(path, settings)[index]
}
