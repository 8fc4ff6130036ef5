import { parseRules, type RuleFile } from '@headgate/rules'
// biome-ignore lint/correctness/noUndeclaredDependencies: only tests load this file
import { onTestFinished } from 'vitest'
import type { Logger } from '../log.ts'
import { type RunningGateway, startGateway } from '../start.ts'

/** What a test's gateway is made of; rules and settings as the rule file writes them, in flow style. */
export interface TestSetup {
  /** Origins behind the only route; none: no route. */
  upstreams?: readonly string[]
  /** Instead: the routes in full. */
  routes?: readonly object[]
  rules?: readonly object[]
  dimensions?: object
  /** Further settings of `gateway:`. */
  gateway?: object
  /** Further settings of the route. */
  route?: object
  admin?: object
  store?: string
  timeout?: string
}

export interface LoggedLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly details: object
}

/** A gateway in this process with what it logged. It closes with its test. */
export class TestGateway {
  readonly running: RunningGateway
  readonly lines: LoggedLine[]

  private constructor(running: RunningGateway, lines: LoggedLine[]) {
    this.running = running
    this.lines = lines
  }

  static async start(setup: TestSetup): Promise<TestGateway> {
    const lines: LoggedLine[] = []
    const started = new TestGateway(await startGateway(testFile(setup), { logger: collector(lines) }), lines)
    onTestFinished(() => started.close())
    return started
  }

  get address(): string {
    return this.running.address
  }

  close(): Promise<void> {
    return this.running.close()
  }
}

function collector(lines: LoggedLine[]): Logger {
  const at = (level: LoggedLine['level']) => (details: object, message: string) => {
    lines.push({ level, message, details })
  }
  return { info: at('info'), warn: at('warn'), error: at('error') }
}

/** JSON is YAML. */
export function testFile(setup: TestSetup): RuleFile {
  const { upstreams = [], rules = [], dimensions, gateway, route, store = 'memory' } = setup
  const only = upstreams.length > 0 ? [{ path: '/*', upstream: upstreams, ...route }] : []
  const document = {
    store,
    ...(setup.timeout ? { timeout: setup.timeout } : {}),
    gateway: { listen: '127.0.0.1:0', routes: setup.routes ?? only, ...gateway },
    ...(setup.admin ? { admin: setup.admin } : {}),
    ...(dimensions ? { dimensions } : {}),
    rules: rules.map((rule) => ({ description: 'for a test', ...rule })),
  }
  return parseRules(JSON.stringify(document), { file: 'test.yaml' })
}
