import { describe, expect, it } from 'vitest'
import {
  any,
  blocking,
  bucket,
  clock,
  firstHit,
  mostWithin,
  unanchored,
  weighted,
} from '../../bench/accuracy/judge.mjs'

const limit = { limit: 2, periodMs: 1000 }
/** Decided within a millisecond; `took` otherwise. */
const attempt = (sentMs: number, admitted: boolean | undefined, { cost = 1, took = 1 } = {}) => ({
  sentMs,
  receivedMs: sentMs + took,
  cost,
  admitted,
})
const yes = (sentMs: number, options = {}) => attempt(sentMs, true, options)
const no = (sentMs: number, options = {}) => attempt(sentMs, false, options)

/** What is over, and at which instants it was wrong to refuse. */
function verdict(judge: typeof any, attempts: ReturnType<typeof attempt>[]) {
  const { over, hasRoom } = judge(attempts, limit)
  return { over, wrong: attempts.filter((each) => each.admitted === false && hasRoom(each)).map((each) => each.sentMs) }
}

describe('what passed is held against its promise', () => {
  it.each([
    ['any period', any, [yes(0), yes(500), yes(900)], 1],
    ['a bucket', bucket, [yes(0), yes(1), yes(2), yes(3)], 1],
    ['windows by the clock', clock, [yes(10), yes(20), yes(30), yes(1010)], 1],
    ['windows that a request opens', firstHit, [yes(500), yes(1200), yes(1300)], 1],
    ['weighted windows', weighted, [yes(100), yes(200), yes(1100), yes(1200)], 1],
    ['windows that begin nobody says when', unanchored, [yes(0), yes(1), yes(2), yes(3), yes(4)], 1],
    ['windows with a block', blocking, [yes(0), yes(1), yes(2)], 1],
  ])('%s: one too many is over', (_, judge, attempts, over) => {
    expect(verdict(judge, attempts)).toEqual({ over, wrong: [] })
  })

  it.each([
    ['any period', any, [yes(0), no(500)], [500]],
    ['any period, after one has lapsed', any, [yes(0), yes(10), no(1002), no(1020)], [1020]],
    ['a bucket', bucket, [yes(0), yes(1), no(400), no(600)], [600]],
    ['windows by the clock', clock, [yes(10), yes(20), no(900), no(1100)], [1100]],
    ['windows that a request opens', firstHit, [yes(500), yes(600), no(1400), no(1600)], [1600]],
    ['weighted windows', weighted, [yes(100), yes(200), no(1010), no(1900)], [1010, 1900]],
    ['windows with a block', blocking, [yes(0), yes(1), no(900), no(1500), no(2100)], [2100]],
  ])('%s: refused although it fitted', (_, judge, attempts, wrong) => {
    expect(verdict(judge as typeof any, attempts).wrong).toEqual(wrong)
  })

  it('lets a window be opened by what is charged only, where that is the promise', () => {
    const opens = ({ admitted }: { admitted?: boolean | undefined }) => admitted === true
    const attempts = [no(0), yes(800), yes(900), no(1200), no(1900)]
    const { over, hasRoom } = firstHit(attempts, { ...limit, opens })
    expect([over, ...attempts.filter((each) => !each.admitted).map(hasRoom)]).toEqual([0, true, false, true])
  })

  it('counts units, not requests', () => {
    expect(verdict(any, [yes(0, { cost: 2 }), yes(10, { cost: 3 })]).over).toBe(3)
    expect(mostWithin([yes(0, { cost: 2 }), yes(10)], 1000)).toBe(3)
  })
})

describe('who is judged gets the benefit of the doubt', () => {
  it('where it was decided before or after an edge', () => {
    expect(verdict(clock, [yes(10), yes(20), yes(995, { took: 50 }), yes(1060)])).toEqual({ over: 0, wrong: [] })
    expect(verdict(any, [yes(0, { took: 50 }), yes(10), yes(1020)])).toEqual({ over: 0, wrong: [] })
  })

  it('where a charge was never confirmed', () => {
    expect(verdict(any, [attempt(0, undefined), yes(10), no(20)])).toEqual({ over: 0, wrong: [] })
    expect(verdict(bucket, [attempt(0, undefined), yes(1), no(5)])).toEqual({ over: 0, wrong: [] })
  })
})
