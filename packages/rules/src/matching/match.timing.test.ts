import { expect, it } from 'vitest'
import { request, rules } from '../test-support/rules.ts'

const ROUNDS = 11
const MATCHES = 10_000

it('matches among 2,000 rules as fast as among 10, since rules for other paths are not looked at', () => {
  const few = matching(10)
  const many = matching(2000)
  // The same work in turns, so that whatever else the machine does falls on both.
  const ratios: number[] = []
  const fewNs: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const [first, second] = round % 2 === 0 ? [few, many] : [many, few]
    const times = [time(first), time(second)]
    const [fewMs, manyMs] = (round % 2 === 0 ? times : times.reverse()) as [number, number]
    ratios.push(fewMs / manyMs)
    fewNs.push((fewMs * 1e6) / MATCHES)
  }
  console.log(
    `speed among 2,000 rules against 10: ${median(ratios).toFixed(2)}; ${median(fewNs).toFixed(0)} ns a match`,
  )
  expect(median(ratios)).toBeGreaterThanOrEqual(0.9)
})

function matching(count: number): () => void {
  const others = Array.from(
    { length: count - 1 },
    (_, i) => `
  - { name: r${i}, match: { path: [/api/v${i % 7}/things${i}, "/api/things${i}/:id"], method: GET }, limits: [{ by: ip, limit: 5/s }] }`,
  )
  const file = rules(`
dimensions: { user: { header: x-user-id } }
rules:
  - name: detail
    match: { path: /api/product/:id, method: GET }
    limits: [{ by: global, limit: 800/s }, { by: user, limit: 5/s }, { by: ip, limit: 20/s }]${others.join('')}`)
  const requests = Array.from({ length: 64 }, (_, i) =>
    request({ path: `/api/product/${i}`, headers: { 'x-user-id': `user-${i}` }, ip: `10.0.0.${i}` }),
  )
  return () => {
    let items = 0
    for (let i = 0; i < MATCHES; i++) {
      const match = file.match(requests[i % 64] as (typeof requests)[number])
      items += match.outcome === 'check' ? match.items.length : 0
    }
    expect(items).toBe(3 * MATCHES)
  }
}

function time(work: () => void): number {
  const start = performance.now()
  work()
  return performance.now() - start
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] as number
}
