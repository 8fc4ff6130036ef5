import { buildDimension, builtInDimensions, type DimensionSource } from '../dimensions/build.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import type { PathSettings } from '../paths/normalize.ts'
import { BUILT_IN } from '../schema/dimension.ts'
import type { Report } from '../source/report.ts'
import type { Path } from '../source/tree.ts'
import type { FileValues } from './context.ts'

type DimensionValues = NonNullable<NonNullable<FileValues['dimensions']>[string]>

/** What limits can count by; where a dimension has errors, its name is still known. */
export interface Dimensions {
  readonly byName: ReadonlyMap<string, Dimension>
  /** Names of path parameters by dimension. */
  readonly parameters: ReadonlyMap<string, string>
  readonly names: readonly string[]
}

const SOURCES = ['header', 'cookie', 'query', 'path', 'address'] as const

export function compileDimensions(values: FileValues, paths: PathSettings, report: Report): Dimensions {
  const keySecret = values.keySecret === '' ? undefined : values.keySecret
  const byName = new Map(builtInDimensions(keySecret).map((dimension) => [dimension.name, dimension]))
  const parameters = new Map<string, string>()
  const names: string[] = [...BUILT_IN]
  for (const [name, dimension] of Object.entries(values.dimensions ?? {})) {
    const path = ['dimensions', name]
    if ((BUILT_IN as readonly string[]).includes(name)) {
      report.add(path, 'HEADGATE_RULES_CONFLICT', 'is built in; give yours another name', { at: 'key' })
      continue
    }
    names.push(name)
    const source = dimension && sourceOf(dimension, path, report)
    if (!dimension || !source) continue
    if (source.kind === 'path') parameters.set(name, source.name)
    const { missing = 'ip', secret = false, normalize } = dimension
    const settings = { name, source, missing, secret, normalize }
    byName.set(name, buildDimension(settings, byName.size, keySecret, paths))
  }
  return { byName, parameters, names }
}

function sourceOf(values: DimensionValues, path: Path, report: Report): DimensionSource | undefined {
  const given = SOURCES.filter((key) => values[key] !== undefined)
  const [kind, second] = given
  if (second !== undefined) {
    report.add([...path, second], 'HEADGATE_RULES_CONFLICT', `stands beside ${kind}; a dimension has one source`, {
      at: 'key',
    })
    return undefined
  }
  if (kind === undefined) {
    const wrong = report.failedWithin(path)
    if (!wrong)
      report.add(path, 'HEADGATE_RULES_VALUE', `has no source; write one of ${SOURCES.join(', ')}`, { at: 'key' })
    return undefined
  }
  if (kind === 'address') {
    const { v4 = 32, v6 = 64 } = values.address ?? {}
    if (values.normalize !== undefined) {
      report.add([...path, 'normalize'], 'HEADGATE_RULES_CONFLICT', 'does not fit an address; leave it out', {
        at: 'key',
      })
    }
    return { kind, v4, v6 }
  }
  return { kind, name: values[kind] ?? '' }
}
