import { describe, expect, it } from 'vitest'
import { fixedWindow } from '../../algorithms/fixed-window/index.ts'
import { tokenBucket } from '../../algorithms/token-bucket/index.ts'
import type { Operation, Part, Ticket } from '../../store.ts'
import { Batch } from './batch.ts'

const bucket = tokenBucket({ limit: 3, period: '1s' })
const window = fixedWindow({ limit: 7, period: '1m', align: 'first-hit' })

function part(value: string, limit = bucket, cost = 1): Part {
  return { name: 'limit', limit, space: 'rule:limit:', value, cost, onStoreFailure: 'local' }
}

interface Heard extends Ticket {
  readonly answers: unknown[][]
}

function ticket(parts: readonly Part[], { peek = false, deadlineMs = 0 } = {}, operation?: Operation): Heard {
  const answers: unknown[][] = []
  const answer = (...told: unknown[]) => void answers.push(told)
  const fail = () => undefined
  return { check: { parts, peek, operation }, deadlineMs, settled: false, answers, answer, fail }
}

describe('a batch', () => {
  it('names each key and each limit once, and costs only where one is not 1', () => {
    const batch = new Batch({ prefix: 'rate_limit:' })
    batch.add(ticket([part('ann'), part('bob', window)]))
    batch.add(ticket([part('ann', bucket, 2), part('eve')]))
    batch.add(ticket([part('eve', window)], { peek: true }))
    expect(batch.keys).toEqual(['ann', 'bob', 'eve'].map((key) => `rate_limit:rule:limit:${key}`))
    expect(JSON.parse(batch.encode(1_700_000_000_000_000, 1_600_000_000_000_000))).toEqual([
      1_700_000_000_000_000,
      2,
      ...[1, 0, 3, 1_000_000, 3],
      ...[2, 0, 7, 60_000_000, 1, 0, 0],
      ...[2 * 32, 4096 + 1, 2 * 4096 + 2],
      ...[2 * 32 + 2, 4096 + 1, 2, 4096 + 3, 1],
      ...[1 * 32 + 1, 2 * 4096 + 3],
    ])
  })

  it('has the earliest deadline of its callers', () => {
    const batch = new Batch({ prefix: 'p:' })
    for (const deadlineMs of [70, 50, 60]) batch.add(ticket([part('ann')], { deadlineMs }))
    expect(batch.deadlineMs).toBe(50)
  })

  it('reads the receipt of a place in line that another gave up between the result and the views', () => {
    const batch = new Batch({ prefix: 'p:' })
    const one = ticket([part('ann')], {}, { name: 'book', args: [9, 1, 1, 1] })
    batch.add(one)
    expect(batch.answer([0, 99, 0, 4, 120, 150, 333], 77)).toBe(true)
    expect(one.answers).toMatchObject([[{ allowed: true, result: 120, receiptUs: 150, at: 6, end: 7 }]])
  })

  it('hands each caller its verdict and where its views begin', () => {
    const batch = new Batch({ prefix: 'p:' })
    const tickets = [ticket([part('ann'), part('bob', window)]), ticket([part('eve')])]
    for (const one of tickets) batch.add(one)
    const reply = [0, 99, 0, 1, 333_333, 5, 1234, 0, 1_000_000]
    expect(batch.answer(reply, 77)).toBe(true)
    const told = {
      nowUs: 99,
      view: reply,
      result: 0,
      blockedPart: -1,
      blockedUs: 0,
      receiptUs: 0,
      firm: true,
      writtenMs: 77,
    }
    expect(tickets.map(({ answers }) => answers)).toEqual([
      [[{ ...told, allowed: true, at: 4, end: 7 }]],
      [[{ ...told, allowed: false, at: 8, end: 9 }]],
    ])
  })

  it('hands out nothing of a reply that is not of its form', () => {
    for (const reply of [[], [0, 99, 0], [0, 99, 0, 1], [0, 99, 0, 1, 5, 6]]) {
      const batch = new Batch({ prefix: 'p:' })
      const one = ticket([part('ann')])
      batch.add(one)
      expect([batch.answer(reply, 0), one.answers]).toEqual([false, []])
    }
  })

  it('has room for 128 checks, or 256 limits; a check of more leaves by itself', () => {
    const checks = new Batch({ prefix: 'p:' })
    for (let i = 0; i < 128; i++) {
      expect(checks.hasRoomFor(ticket([part('ann')]).check)).toBe(true)
      checks.add(ticket([part('ann')]))
    }
    expect(checks.hasRoomFor(ticket([part('ann')]).check)).toBe(false)

    const wide = (count: number) => ticket(Array.from({ length: count }, (_, i) => part(`${i}`)))
    const limits = new Batch({ prefix: 'p:' })
    expect(limits.hasRoomFor(wide(1000).check)).toBe(true)
    limits.add(wide(250))
    expect([limits.hasRoomFor(wide(6).check), limits.hasRoomFor(wide(7).check)]).toEqual([true, false])
  })
})
