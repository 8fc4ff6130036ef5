import { parseRules } from '@headgate/rules'
import { describe, expect, it } from 'vitest'
import { ordersFile } from '../test-support/rules.ts'
import { readRequest } from './request.ts'
import { budgetsOf, type Verdict, verdictOfLimits, verdictOfRules } from './verdict.ts'

async function verdict(
  rules: string,
  target: string,
  header: readonly string[] = [],
  ip = '127.0.0.1',
): Promise<Verdict> {
  const file = parseRules(rules, { file: 'headgate.yaml' })
  const read = readRequest(file, 'GET', target, { header, ip })
  if ('problem' in read) throw new Error(read.problem)
  const explanation = file.explain(read.request)
  const budgets = await budgetsOf(explanation, file)
  return budgets
    ? verdictOfLimits(budgets.decision, file, read.request)
    : (verdictOfRules(explanation, file, read.request) as Verdict)
}

const orders = ordersFile('memory')

describe('what would happen to a request', () => {
  it('passes where all limits admit it', async () => {
    expect(await verdict(orders, '/api/orders')).toMatchObject({ allowed: true, why: 'all limits admit it' })
  })

  it('passes by a list, whatever the limits', async () => {
    const why = 'staff allows it, whatever the limits'
    expect(await verdict(orders, '/api/orders', ['x-staff: 1'])).toEqual({ allowed: true, why })
  })

  it('is refused by a list', async () => {
    const refused = { allowed: false, status: 403, why: 'banned denies it' }
    expect(await verdict(orders, '/api/orders', ['x-staff: 1'], '198.51.100.3')).toEqual(refused)
  })

  it('is refused where it does not carry what a rule demands', async () => {
    const why = 'strict needs must, which the request does not carry'
    expect(await verdict(orders, '/api/strict')).toEqual({ allowed: false, status: 400, why })
  })

  it('is refused for ever by a limit of 0', async () => {
    const closed = 'rules: [{ name: closed, description: d, limits: [{ by: global, limit: 0/s }] }]'
    const why = 'closed/global can never hold what this costs'
    expect(await verdict(closed, '/')).toMatchObject({ allowed: false, status: 429, why })
  })

  it('passes the rules and finds no route', async () => {
    const why = 'no limit applies, but no route leads from /other'
    expect(await verdict(orders, '/other')).toEqual({ allowed: true, status: 404, why })
  })

  it('needs no route where the file has no gateway', async () => {
    expect(await verdict('rules: []', '/other')).toEqual({ allowed: true, why: 'no limit applies' })
  })
})
