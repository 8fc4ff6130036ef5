import { existsSync } from 'node:fs'
import { loadRules, type RuleFile } from '@headgate/rules'
import { HeadgateError } from 'headgate'

const DEFAULT_FILE = './headgate.yaml'

/**
 * Which rule file is meant: `-c`, then `HEADGATE_CONFIG`, then `./headgate.yaml`.
 * @throws HeadgateError with HEADGATE_RULES_FILE when there is no such file
 */
export function ruleFilePath(config: string | undefined): string {
  const named = config ?? process.env.HEADGATE_CONFIG
  const file = named === undefined || named === '' ? DEFAULT_FILE : named
  if (existsSync(file)) return file
  const where =
    file === DEFAULT_FILE
      ? 'no rule file: ./headgate.yaml does not exist here; name one with -c FILE or HEADGATE_CONFIG'
      : `${file}: there is no such file; ${config === undefined ? 'correct HEADGATE_CONFIG' : 'name one that exists'}`
  throw new HeadgateError('HEADGATE_RULES_FILE', where)
}

/** @throws RuleFileError when it has errors */
export function openRules(config: string | undefined): Promise<RuleFile> {
  return loadRules(ruleFilePath(config))
}
