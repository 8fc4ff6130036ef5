import { expect, it } from 'vitest'
import { rules } from './test-support/rules.ts'

it('loads ten times as many rules in about ten times as long', () => {
  const [few, many] = [text(200), text(2000)]
  rules(many)
  const ratios = Array.from({ length: 3 }, () => time(many) / time(few)).sort((a, b) => a - b)
  console.log(`2,000 rules against 200: ${ratios[1]?.toFixed(1)} times as long`)
  expect(ratios[1]).toBeLessThan(30)
})

function text(count: number): string {
  return `rules:${Array.from(
    { length: count },
    (_, i) => `
  - { name: r${i}, description: d, match: { path: /api/things${i} }, ${i % 4 === 0 ? 'deny: true' : 'limits: [{ by: ip, limit: 5/s }]'} }`,
  ).join('')}`
}

function time(source: string): number {
  const start = performance.now()
  rules(source)
  return performance.now() - start
}
