import { createHash } from 'node:crypto'
import { explain } from '../matching/explain.ts'
import { itemsFor, unknownRule } from '../matching/items-for.ts'
import { Matcher } from '../matching/matcher.ts'
import type { RulePlan } from '../matching/plan.ts'
import { RuleFileError } from '../problem.ts'
import type { GatewaySettings, RuleFile } from '../rule-file.ts'
import { durationMs } from '../schema/values.ts'
import type { Report } from '../source/report.ts'
import { storeName, storeSettings } from '../store-url.ts'
import type { FileValues } from './context.ts'
import { compileDimensions } from './dimensions.ts'
import { compileAdmin, compileGateway, pathSettings } from './gateway.ts'
import { routeFinder } from './routes.ts'
import { compileRules } from './rules.ts'
import { refuseTooMany } from './too-many.ts'
import { warn } from './warnings.ts'

/**
 * Compiles a file's values. What is wrong goes to the report.
 * @param rulesText gives the rules as the file has them, where nothing is wrong; the version is made of it
 * @throws RuleFileError with all problems
 */
export function compileFile(values: FileValues, rulesText: () => string, report: Report): RuleFile {
  const paths = pathSettings(values.gateway)
  const dimensions = compileDimensions(values, paths, report)
  const plans = compileRules(values, dimensions, paths, report)
  const gateway = values.gateway && compileGateway(values.gateway, paths, report)
  const admin = values.admin && compileAdmin(values.admin, report)
  refuseTooMany(values, plans, paths, report)
  warn(values, plans, report)
  if (report.failed) throw new RuleFileError(report.sorted())
  const store = storeSettings(values.store ?? 'memory')
  return {
    file: report.file,
    version: createHash('sha256').update(rulesText()).digest('hex').slice(0, 12),
    warnings: report.sorted(),
    store,
    storeName: storeName(store),
    prefix: values.prefix ?? 'rate_limit',
    timeoutMs: durationMs(values.timeout ?? '50ms') ?? 50,
    instances: values.instances ?? 1,
    ...(gateway === undefined ? {} : { gateway }),
    ...(admin === undefined ? {} : { admin }),
    ...rulesApi(plans, paths, gateway),
  }
}

type RulesApi = Pick<RuleFile, 'rules' | 'match' | 'explain' | 'itemsFor' | 'routeFor'>

function rulesApi(
  plans: readonly RulePlan[],
  paths: GatewaySettings['paths'],
  gateway: GatewaySettings | undefined,
): RulesApi {
  const on = plans.filter(({ rule }) => rule.mode !== 'off')
  const matcher = new Matcher(on, paths)
  const rules = plans.map(({ rule }) => rule)
  return {
    rules,
    match: (request) => matcher.match(request),
    explain: (request) => explain(rules, on, matcher, request),
    itemsFor: (name, limit, values) => {
      const plan = plans.find(({ rule }) => rule.name === name)
      if (plan === undefined) {
        throw unknownRule(
          name,
          rules.map((rule) => rule.name),
        )
      }
      return itemsFor(plan, limit, values)
    },
    routeFor: routeFinder(gateway?.routes ?? [], paths),
  }
}
