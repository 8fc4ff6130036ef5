import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tokenBucket } from '../../../algorithms/token-bucket/index.ts'
import { judgedOf } from '../../../part.ts'
import { slotOf, TAG_COUNT, TAGS, tagOf } from './tags.ts'

const limit = tokenBucket({ limit: 5, period: '1s' })
const tagOfItem = (key: string | string[], rule: string | undefined = 'rule', name = 'limit') =>
  tagOf(judgedOf([{ rule, name, limit, key }]).parts[0] as { space: string; value: string })

describe('tags', () => {
  it('stand in one slot of each 256, so that nodes with ranges of slots have them evenly', () => {
    expect(slotOf('123456789')).toBe(0x31c3 % 16_384)
    expect(TAGS.map(({ slot }) => Math.floor(slot / 256))).toEqual(Array.from({ length: TAG_COUNT }, (_, i) => i))
    for (const { text, slot } of TAGS) expect(slotOf(text)).toBe(slot)
  })

  it('are those that stored counters go by', () => {
    expect(TAGS.map(({ text }) => text).join(' ')).toMatchInlineSnapshot(
      `"10 18 113 342 29 21 3 122 69 61 72 162 50 58 153 43 11 19 112 343 28 20 2 123 68 60 73 163 51 59 152 42 12 102 111 119 133 23 1 9 173 63 70 78 52 142 49 41 13 103 110 118 132 22 0 8 172 62 71 79 53 143 48 40"`,
    )
    expect(['ann', '42', '192.0.2.1', 'a b'].map((key) => TAGS[tagOfItem(key)]?.text)).toMatchInlineSnapshot(`
      [
        "21",
        "102",
        "18",
        "23",
      ]
    `)
  })

  it('are one for all limits of a caller, and of a rule what its callers share', () => {
    fc.assert(
      fc.property(fc.string(), (key) => {
        if (key !== '') expect(tagOfItem(key, 'other', 'name')).toBe(tagOfItem(key))
      }),
    )
    expect(tagOfItem('', 'rule', 'minute')).toBe(tagOfItem('', 'rule', 'hour'))
    const items = ['enforced', 'candidate'] as const
    const parts = judgedOf(
      items.map((group) => ({ rule: 'rule', name: 'limit', limit, key: '', group, ...penalty(group) })),
    )
    const beside = parts.followers?.flatMap((follower) => follower.parts) ?? []
    expect(new Set([...parts.parts, ...beside].map(tagOf))).toEqual(new Set([tagOfItem('')]))
    expect(beside).toHaveLength(2)
  })

  it('spread callers evenly', () => {
    const counts = new Array<number>(TAG_COUNT).fill(0)
    for (let i = 0; i < 64_000; i++) counts[tagOfItem(`user-${i}`)] = (counts[tagOfItem(`user-${i}`)] as number) + 1
    expect(Math.min(...counts)).toBeGreaterThan(700)
    expect(Math.max(...counts)).toBeLessThan(1300)
  })
})

function penalty(group: string): object {
  return group === 'enforced' ? { penalty: { refusals: 3, withinMs: 1000, blockMs: 1000 } } : {}
}
