import { describe, expect, it } from 'vitest'
import { fixedWindow } from './algorithms/fixed-window/index.ts'
import { tokenBucket } from './algorithms/token-bucket/index.ts'
import { deriveDecision } from './derive.ts'
import { Groups } from './groups.ts'
import { judgedOf } from './part.ts'
import type { Check, Part } from './store.ts'
import { memoryStore } from './stores/memory.ts'

const hour = (limit: number) => fixedWindow({ limit, period: '1h' })

/** Every value is a group of its own; `broken`: what is given back is lost. */
function grouped(broken = false) {
  const store = memoryStore()
  const asked: string[] = []
  const lost: string[] = []
  const name = ({ parts, peek, operation }: Check) =>
    `${operation?.name ?? (peek ? 'peek' : 'check')} ${parts.map(({ value }) => value || 'all').join()}`
  const values: string[] = []
  const groups = new Groups(
    {
      groupOf({ value }: Part) {
        if (!values.includes(value)) values.push(value)
        return values.indexOf(value)
      },
    },
    async (check) => {
      asked.push(name(check))
      if (broken) throw new Error('the node is gone')
      return [...store.judge(check).view].slice(0, check.parts.length)
    },
    ({ message }) => lost.push(message),
  )
  const decide = (check: Check) =>
    groups.decide(check, async (each) => {
      asked.push(name(each))
      return deriveDecision(each, store.judge(each), 'store', false)
    })
  return { groups, decide, asked, lost }
}

function checkOf(...items: [key: string, limit: ReturnType<typeof hour>][]): Check {
  return { ...judgedOf(items.map(([key, limit], i) => ({ rule: 'r', name: `l${i}`, limit, key }))), peek: false }
}

describe('groups', () => {
  it("are asked the caller's own first, slower limits before faster ones, and last what all share", async () => {
    const { decide, asked, groups } = grouped()
    const check = checkOf(['', hour(1)], ['plan', hour(1000)], ['ann', hour(5)])
    expect(groups.isSpread(check)).toBe(true)
    expect((await decide(check)).limits.map(({ remaining }) => remaining)).toEqual([0, 999, 4])
    expect(asked).toEqual(['check ann', 'check plan', 'check all'])
  })

  it('are given back in the turn in which what is left is asked for; those behind a refusal are only asked', async () => {
    const { decide, asked } = grouped()
    const refused = await decide(checkOf(['', hour(9)], ['plan', hour(0)], ['ann', hour(5)]))
    expect([refused.allowed, refused.limitedBy, refused.limits.map(({ remaining }) => remaining)]).toEqual([
      false,
      'l1',
      [9, 0, 5],
    ])
    expect(asked.slice(0, 1)).toEqual(['check plan'])
    expect(asked.filter((each) => each.startsWith('check'))).toEqual(['check plan'])
  })

  it('tell of a charge that could not be given back, and decide all the same', async () => {
    const { decide, lost } = grouped(true)
    const refused = await decide(checkOf(['ann', hour(5)], ['', hour(0)]))
    expect([refused.allowed, refused.limitedBy, lost]).toEqual([false, 'l1', ['the node is gone']])
    expect(refused.limits.map(({ remaining }) => remaining)).toEqual([4, 0])
  })

  it('are one where all counters stand together: then nothing is split', () => {
    const { groups } = grouped()
    const limit = tokenBucket({ limit: 5, period: '1s' })
    const items = ['a', 'b'].map((name) => ({ rule: 'r', name, limit, key: 'ann' }))
    expect(groups.isSpread({ ...judgedOf(items), peek: false })).toBe(false)
  })
})
