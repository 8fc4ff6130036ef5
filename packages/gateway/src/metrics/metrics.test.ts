import {
  createEngine,
  type Decision,
  fixedWindow,
  type MatchedRule,
  memoryStore,
  type RemoteStore,
  StoreFault,
  type StoreReport,
  tokenBucket,
} from 'headgate'
import { describe, expect, it } from 'vitest'
import { Metrics, NO_ANSWER } from './index.ts'

const RULES = [
  { name: 'product-detail', limits: [{ name: 'global' }, { name: 'user' }] },
  { name: 'login', limits: [{ name: 'ip' }] },
]
const FILE = { version: 'v1', rules: RULES, gateway: { routes: [{ path: '/api/*' }] } }

const [product, login] = RULES.map(({ name }): MatchedRule => {
  return { name, headers: 'standard', disclose: false, globalLimits: name === 'login' ? [] : ['global'] }
}) as [MatchedRule, MatchedRule]

function metricsOf(file: Parameters<Metrics['apply']>[0] = FILE): Metrics {
  const metrics = new Metrics({ version: '1.2.3', nowMs: () => 1_900_000_000_000 })
  metrics.apply(file)
  return metrics
}

/** Every series with its value. */
async function scrape(metrics: Metrics): Promise<Map<string, number>> {
  const lines = (await metrics.render()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const series = lines.map((line) => [
    line.slice(0, line.lastIndexOf(' ')),
    Number(line.slice(line.lastIndexOf(' ') + 1)),
  ])
  expect(new Set(series.map(([name]) => name)).size).toBe(series.length)
  return new Map(series as [string, number][])
}

const decisions = (rule: string, limit: string, outcome: string, source = 'store') =>
  `headgate_decisions_total{rule="${rule}",limit="${limit}",outcome="${outcome}",source="${source}"}`

function status(rule: string, name: string, retryAfterMs = 0): Decision['limits'][number] {
  return {
    rule,
    name,
    limit: 10,
    capacity: 10,
    periodMs: 1000,
    remaining: 5,
    retryAfterMs,
    nextMs: 1,
    resetAfterMs: 1e9,
  }
}

function decision(allowed: boolean, limits: Decision['limits'], more: Partial<Decision> = {}): Decision {
  return { allowed, retryAfterMs: 0, delayMs: 0, limits, at: 0, source: 'store', degraded: false, ...more }
}

describe('metrics', () => {
  it('count a request once and its decision once for each rule that matched', async () => {
    const metrics = metricsOf()
    metrics.request('allowed')
    metrics.decision(
      decision(true, [status('product-detail', 'user'), status('login', 'ip')]),
      [product, login],
      0.0002,
    )
    const series = await scrape(metrics)
    expect(series.get('headgate_requests_total{outcome="allowed"}')).toBe(1)
    expect(series.get('headgate_requests_total{outcome="limited"}')).toBe(0)
    expect(series.get(decisions('product-detail', '', 'allowed'))).toBe(1)
    expect(series.get(decisions('login', '', 'allowed'))).toBe(1)
  })

  it('count a refusal for the limit that refused, and the other rule as allowed', async () => {
    const metrics = metricsOf()
    const limits = [
      status('product-detail', 'global', 10),
      status('product-detail', 'user', 200),
      status('login', 'ip'),
    ]
    metrics.decision(decision(false, limits, { reason: 'limit' }), [product, login], 0.0002)
    const series = await scrape(metrics)
    expect(series.get(decisions('product-detail', 'user', 'limited'))).toBe(1)
    expect(series.get(decisions('product-detail', 'global', 'limited'))).toBe(0)
    expect(series.get(decisions('login', '', 'allowed'))).toBe(1)
  })

  it('tell what was decided without the store', async () => {
    const metrics = metricsOf()
    metrics.decision(decision(true, [status('login', 'ip')], { source: 'local', degraded: true }), [login], 0.05)
    const closed = { reason: 'store', rule: 'login', limitedBy: 'ip', source: 'policy', degraded: true } as const
    metrics.decision(decision(false, [], closed), [product, login], 0.05)
    const series = await scrape(metrics)
    expect(series.get(decisions('login', '', 'allowed', 'local'))).toBe(1)
    expect(series.get(decisions('login', 'ip', 'error', 'policy'))).toBe(1)
    expect(series.get(decisions('product-detail', '', 'allowed', 'policy'))).toBe(1)
  })

  it('count rules that answer without a check', async () => {
    const metrics = metricsOf({ ...FILE, rules: [...RULES, { name: 'blocklist', limits: [] }] })
    metrics.listed('blocklist', 'denied')
    expect((await scrape(metrics)).get(decisions('blocklist', '', 'denied', 'policy'))).toBe(1)
  })

  it('show every series of a rule from the start, so that its first refusal shows as an increase', async () => {
    const series = await scrape(metricsOf())
    expect([...series.keys()].filter((name) => name.startsWith('headgate_decisions_total'))).toEqual([
      decisions('product-detail', '', 'allowed'),
      decisions('product-detail', 'global', 'limited'),
      decisions('product-detail', 'user', 'limited'),
      decisions('login', '', 'allowed'),
      decisions('login', 'ip', 'limited'),
    ])
  })

  it('have no series for a caller: 10,000 denied callers add none (cyanheads/mcp-ts-core#114)', async () => {
    const metrics = metricsOf()
    const engine = createEngine({ store: memoryStore() })
    const limit = tokenBucket({ limit: 0, period: '1s' })
    const before = await scrape(metrics)
    for (let i = 0; i < 10_000; i++) {
      const denied = await engine.check([{ rule: 'login', name: 'ip', limit, key: `198.51.${i >> 8}.${i & 255}` }])
      metrics.decision(denied, [login], 0.0001)
      metrics.request('limited')
      metrics.upstream('/api/*', NO_ANSWER, 0.001)
    }
    const after = await scrape(metrics)
    expect(after.get(decisions('login', 'ip', 'limited'))).toBe(10_000)
    const added = [...after.keys()].filter((name) => !before.has(name))
    expect(added).toEqual(['headgate_upstream_responses_total{route="/api/*",code="none"}'])
    expect((await metrics.render()).length).toBeLessThan(1_000_000)
  })

  it('count names that the rule file does not have as other (cyanheads/mcp-ts-core#114)', async () => {
    const metrics = metricsOf()
    for (let i = 0; i < 1000; i++) {
      const stranger: MatchedRule = { ...login, name: `rule-${i}`, globalLimits: ['global'] }
      metrics.decision(decision(true, [status(stranger.name, 'global')]), [stranger], 0)
      metrics.decision(decision(false, [status('login', `limit-${i}`, 5)], { reason: 'limit' }), [login], 0)
      metrics.upstream(`/path-${i}`, 200 + i, 0)
    }
    const series = await scrape(metrics)
    expect(series.get(decisions('other', '', 'allowed'))).toBe(1000)
    expect(series.get(decisions('login', 'other', 'limited'))).toBe(1000)
    expect(series.get('headgate_upstream_duration_seconds_count{route="other"}')).toBe(1000)
    expect(series.size).toBeLessThan(600)
  })

  it('stay under a megabyte with 2,000 rules in use', async () => {
    const rules = Array.from({ length: 2000 }, (_, i) => ({
      name: `rule-with-a-name-of-some-length-${i}`,
      limits: [{ name: 'global' }, { name: 'user' }],
    }))
    const metrics = metricsOf({ ...FILE, rules })
    for (const { name } of rules) metrics.decision(decision(true, [status(name, 'global')]), [{ ...product, name }], 0)
    expect((await metrics.render()).length).toBeLessThan(1_000_000)
  })

  it('keep the counts of rules that stay over a reload, and drop the series of rules that left', async () => {
    const metrics = metricsOf()
    metrics.decision(decision(true, [status('product-detail', 'global')]), [product, login], 0)
    metrics.apply({
      ...FILE,
      version: 'v2',
      rules: [{ name: 'product-detail', limits: [{ name: 'user' }, { name: 'new' }] }],
    })
    const series = await scrape(metrics)
    expect(series.get(decisions('product-detail', '', 'allowed'))).toBe(1)
    expect(series.get(decisions('product-detail', 'new', 'limited'))).toBe(0)
    expect([...series.keys()].filter((name) => name.includes('"login"') || name.includes('"global"'))).toEqual([])
    expect([...series.keys()].filter((name) => name.startsWith('headgate_rules_info'))).toEqual([
      'headgate_rules_info{version="v2"}',
    ])
  })

  it('show what is left of limits that all callers share, and of no other', async () => {
    const metrics = metricsOf()
    let nowUs = 1_900_000_000_000_000
    const engine = createEngine({ store: memoryStore({ clock: () => nowUs }) })
    const check = () =>
      engine.check([
        { rule: 'product-detail', name: 'global', limit: fixedWindow({ limit: 4, period: '1h' }), key: '' },
        { rule: 'product-detail', name: 'user', limit: tokenBucket({ limit: 9, period: '1s' }), key: 'ann' },
      ])
    metrics.decision(await check(), [product], 0)
    const ratios = async () =>
      [...(await scrape(metrics))].filter(([name]) => name.startsWith('headgate_remaining_ratio'))
    expect(await ratios()).toEqual([['headgate_remaining_ratio{rule="product-detail",limit="global"}', 0.75]])
    nowUs += 1
    metrics.decision(await check(), [product], 0)
    expect((await ratios())[0]?.[1]).toBe(0.5)
    metrics.decision(decision(true, [{ ...status('product-detail', 'global'), resetAfterMs: 0 }]), [product], 0)
    expect((await ratios())[0]?.[1]).toBe(1)
  })

  it('put durations into cumulated buckets', async () => {
    const metrics = metricsOf()
    for (const seconds of [0.00001, 0.0003, 0.0004, 0.003, 7]) metrics.decision(decision(true, []), [], seconds)
    const series = await scrape(metrics)
    const bucket = (le: string) => series.get(`headgate_decision_duration_seconds_bucket{le="${le}"}`)
    expect([
      bucket('0.00001'),
      bucket('0.00025'),
      bucket('0.0005'),
      bucket('0.005'),
      bucket('1'),
      bucket('+Inf'),
    ]).toEqual([1, 1, 3, 4, 4, 5])
    expect(series.get('headgate_decision_duration_seconds_count')).toBe(5)
    expect(series.get('headgate_decision_duration_seconds_sum')).toBeCloseTo(7.00371, 6)
  })

  it('count upstreams by route and status', async () => {
    const metrics = metricsOf()
    metrics.upstream('/api/*', 200, 0.02)
    metrics.upstream('/api/*', 503, 0.02)
    metrics.upstream('/api/*', NO_ANSWER, 30)
    const series = await scrape(metrics)
    expect(series.get('headgate_upstream_responses_total{route="/api/*",code="200"}')).toBe(1)
    expect(series.get('headgate_upstream_responses_total{route="/api/*",code="503"}')).toBe(1)
    expect(series.get('headgate_upstream_responses_total{route="/api/*",code="none"}')).toBe(1)
    expect(series.get('headgate_upstream_duration_seconds_bucket{le="0.025",route="/api/*"}')).toBe(2)
  })

  it('follow an engine: degraded, and what went wrong with its store by kind', async () => {
    const metrics = metricsOf()
    const reports: StoreReport[] = []
    const away: RemoteStore = {
      kind: 'remote',
      submit: (ticket) => ticket.fail(new StoreFault('loading', 'LOADING', true)),
      run: () => Promise.reject(new Error('away')),
      watch: (report) => {
        reports.push(report)
        return () => {}
      },
      close: () => Promise.resolve(),
    }
    const engine = createEngine({ store: away })
    const unwatch = metrics.watch(engine)
    expect((await scrape(metrics)).get('headgate_degraded')).toBe(0)
    expect((await scrape(metrics)).get('headgate_lease_stranded_units')).toBe(0)
    const limit = tokenBucket({ limit: 9, period: '1s' })
    // The first one tells that nobody has to ask again.
    for (let i = 0; i < 5; i++) await engine.check([{ rule: 'login', name: 'ip', limit, key: 'ann' }])
    for (const kind of ['garbage', 'subscription', 'a kind that nobody knows']) reports[0]?.('', kind, 2)
    expect((await scrape(metrics)).get('headgate_degraded')).toBe(1)
    // Faults are gathered for a second; closing reports what is held.
    await engine.close()
    const series = await scrape(metrics)
    unwatch()
    expect(series.get('headgate_store_errors_total{kind="loading"}')).toBe(1)
    expect(series.get('headgate_store_errors_total{kind="garbage"}')).toBe(2)
    expect(series.get('headgate_store_errors_total{kind="subscription"}')).toBe(2)
    expect(series.get('headgate_store_errors_total{kind="other"}')).toBe(2)
  })

  it('tell whether the rule file on disk is the one in force', async () => {
    const metrics = metricsOf()
    metrics.reload('failure')
    let series = await scrape(metrics)
    expect(series.get('headgate_rules_last_reload_successful')).toBe(0)
    expect(series.get('headgate_rules_reload_total{result="failure"}')).toBe(1)
    metrics.reload('success')
    metrics.apply({ ...FILE, version: 'v2' })
    series = await scrape(metrics)
    expect(series.get('headgate_rules_last_reload_successful')).toBe(1)
    expect(series.get('headgate_rules_last_reload_success_timestamp_seconds')).toBe(1_900_000_000)
    expect(series.get('headgate_rules_info{version="v2"}')).toBe(1)
    expect(series.get(`headgate_build_info{version="1.2.3",node="${process.version}"}`)).toBe(1)
  })
})
