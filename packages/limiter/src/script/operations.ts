import { CONCURRENCY } from '../algorithms/codes.ts'
import { type ConcurrencyState, release, renew } from '../algorithms/concurrency/index.ts'
import { MAX_EXACT } from '../algorithms/exact.ts'
import { codecOf } from '../algorithms/index.ts'
import type { Operation, OperationName, Part } from '../store.ts'
import { type JudgedOperation, type Judging, keep, kept, markOf, type Slot, settled, unborn } from './judging.ts'
import { lease } from './lending.ts'
import {
  changedAtUs,
  findHold,
  giveBack,
  type Hold,
  hold,
  isCrowded,
  leave,
  type Mark,
  newMark,
  stand,
} from './marks.ts'
import { outdate, takePlace, vacate, voidPlaces } from './places.ts'

/** How long an id is known when it is settled, in µs; a refund's, beyond its receipt. */
const KNOWN_US = 60_000_000

/** By name: the operation's code in the script (`operations.lua`), and how many arguments it has. */
export const OPERATIONS: Record<OperationName, { readonly code: number; readonly onKeys: boolean }> = {
  'take-up-to': { code: 1, onKeys: false },
  book: { code: 2, onKeys: false },
  reserve: { code: 3, onKeys: false },
  refund: { code: 4, onKeys: true },
  commit: { code: 5, onKeys: true },
  extend: { code: 6, onKeys: true },
  release: { code: 7, onKeys: true },
  renew: { code: 8, onKeys: true },
  reset: { code: 9, onKeys: true },
  block: { code: 10, onKeys: true },
  unblock: { code: 11, onKeys: true },
  leave: { code: 12, onKeys: true },
  lease: { code: 13, onKeys: false },
  vacate: { code: 14, onKeys: true },
}

type Args = Operation['args']

/** Operations that are judged like a check. The script's `operations.lua` is the twin: same names, same steps. */
export const JUDGED: { readonly [name: string]: JudgedOperation } = {
  'take-up-to': {
    judge(judging, [n = 0], verdict) {
      let granted = verdict.blockedUs > 0 ? 0 : n
      judging.parts.forEach(({ limit }, p) => {
        granted = Math.min(granted, limit.room(judging.view, judging.at[p] as number))
      })
      for (let p = 0; p < judging.parts.length; p++) judging.cost[p] = granted
      judging.result = granted
      verdict.allowed = granted > 0
      return granted > 0
    },
  },

  book: {
    judge(judging, [longestUs = 0, ticket = 0, graceUs = 0, allBook = 0], verdict) {
      const { parts, nowUs } = judging
      const admitted = verdict.allowed
      let books = allBook === 1
      verdict.allowed = false
      // 1. when all of them have a place
      let waitUs = 0
      for (let p = 0; p < parts.length; p++) {
        const { limit, cost, id = 0 } = parts[p] as Part
        const placeUs = verdict.blockedUs > 0 ? -1 : limit.place(judging.view, judging.at[p] as number, nowUs, cost)
        // The id of a part that holds no slots is the longest wait of its own.
        const most = limit.holdsSlots !== true && id > 0 ? id : longestUs
        waitUs = placeUs < 0 || placeUs > most ? MAX_EXACT : Math.max(waitUs, placeUs)
        const mark = judging.found[p]?.mark
        // What is taken ahead comes back or drains at an instant that nobody knows.
        if (mark !== undefined && (mark.line.length > 0 || mark.leases.length > 0)) books = false
        if (waitUs === MAX_EXACT) break
      }
      // 2. a place that was given up, where it comes earlier
      if (books && parts.length === 1 && verdict.blockedUs === 0 && waitUs > 0) {
        const { id = 0 } = parts[0] as Part
        const mostUs = Math.min(longestUs, id > 0 ? id : longestUs)
        const taken = takePlace(judging, waitUs <= mostUs ? waitUs - 1 : mostUs)
        if (taken !== undefined) {
          judging.result = taken.turnUs
          verdict.receiptUs = taken.receiptUs
          verdict.allowed = true
          return true
        }
      }
      // 3. too late, or at once: nobody waits
      if (waitUs > longestUs || admitted || books) {
        leaveAll(judging, ticket)
        if (waitUs > longestUs) return false
        judging.result = nowUs + waitUs
        verdict.allowed = true
        return true
      }
      // 4. a place that is not booked is kept until shortly after it may be asked for
      if (longestUs === 0 || !standAll(judging, Math.min(nowUs + waitUs + graceUs, MAX_EXACT), ticket)) {
        leaveAll(judging, ticket)
        return false
      }
      judging.waits = true
      judging.result = 1 + parts.reduce((most, _, p) => Math.max(most, judging.behind[p] as number), 0)
      return false
    },
  },

  reserve: {
    judge(judging, [id = 0], verdict) {
      let fullUntilUs = 0
      for (let p = 0; p < judging.parts.length; p++) {
        const mark = judging.found[p]?.mark
        if (findHold(mark, id) >= 0) {
          judging.result = 1
          verdict.allowed = true
          return false
        }
        if (mark !== undefined && isCrowded(mark)) {
          const lapseUs = (mark.holds[0] as Hold).lapseUs
          if (lapseUs > fullUntilUs) fullUntilUs = lapseUs
        }
      }
      if (verdict.allowed && fullUntilUs > 0) {
        judging.result = fullUntilUs
        verdict.allowed = false
      }
      return verdict.allowed
    },

    charged(judging, p, slot, [id = 0, holdUs = 0]) {
      const { limit } = judging.parts[p] as Part
      // Slots are held by themselves.
      if (limit.holdsSlots === true) return
      const receiptUs = limit.receiptUs(judging.view, judging.at[p] as number, judging.nowUs)
      const { nowUs, cost } = judging
      hold(markOf(slot), { lapseUs: nowUs + holdUs, id, units: cost[p] as number, receiptUs, chargedUs: nowUs })
    },
  },

  lease,
}

/** Operations on keys: each part gives one integer. */
export const ON_KEYS: {
  readonly [name: string]: (judging: Judging, part: Part, args: Args) => number
} = {
  refund(judging, part, [id = 0, chargedUs = 0, again = 0]) {
    const { slot, nowUs } = open(judging, part)
    if (id > 0 && findHold(slot?.mark, id) >= 0) return 0
    if (id > 0 && isCrowded(slot?.mark)) return 0
    if (slot?.state === undefined) return 0
    const receiptUs = part.id ?? 0
    // A credit may be of units that a place was charged.
    if (receiptUs === 0) voidPlaces(slot)
    const charge = { units: part.cost, receiptUs, chargedUs }
    const back = giveBack(slot.state, changedAtUs(slot.mark), nowUs, charge, again === 1)
    if (id > 0) hold(markOf(slot), known(id, receiptUs > nowUs ? receiptUs : nowUs))
    kept(slot)
    return back
  },

  commit(judging, part, [id = 0]) {
    const { slot, nowUs } = open(judging, part)
    const { limit, cost, space } = part
    // 1. what is held, if anything
    const place = findHold(slot?.mark, id)
    let held = 0
    if (slot?.mark !== undefined && place >= 0) {
      const found = slot.mark.holds[place] as Mark['holds'][number]
      if (found.units === 0) return 2
      held = found.units
      slot.mark.holds.splice(place, 1)
      hold(slot.mark, known(id, nowUs))
      // 2. less than held: the rest comes back
      if (cost < held && slot.state !== undefined) {
        giveBack(slot.state, changedAtUs(slot.mark), nowUs, { ...found, units: held - cost }, false)
      }
      kept(slot)
    }
    // 3. more than held: a debt, of one full budget at most
    const more = cost - held
    if (more > 0) {
      const state = slot?.state ?? (limit.startsEmpty === true ? unborn(limit, space) : undefined)
      const used = state === undefined ? 0 : codecOf(state).used(state, nowUs)
      const most = 2 * limit.capacity - used
      const view: number[] = []
      if (state !== undefined && state.code !== limit.code) limit.adopt(used, nowUs, view, 0)
      else limit.open(state, nowUs, view, 0, more)
      if (slot !== undefined) outdate(slot, limit, false)
      const taken = Math.min(more, most)
      if (taken > 0) {
        const charged = keep(slot, part, limit.take(slot?.state, nowUs, view, 0, taken, id))
        // 4. a repetition of what was charged anew is known too
        if (place < 0 && !isCrowded(charged.mark)) {
          hold(markOf(charged), known(id, nowUs))
          kept(charged)
        }
      }
      if (taken < more) return place >= 0 ? 3 : 4
    }
    return place >= 0 ? 0 : 1
  },

  extend(judging, part, [id = 0, holdUs = 0]) {
    const { slot, nowUs } = open(judging, part)
    const place = findHold(slot?.mark, id)
    if (slot?.mark === undefined || place < 0) return 0
    const found = slot.mark.holds[place] as Mark['holds'][number]
    if (found.units === 0) return 0
    slot.mark.holds.splice(place, 1)
    hold(slot.mark, { ...found, lapseUs: nowUs + holdUs })
    kept(slot)
    return 1
  },

  release(judging, part) {
    const { slot, nowUs } = open(judging, part)
    if (slot?.state?.code !== CONCURRENCY) return 0
    if (!release(slot.state as ConcurrencyState, nowUs, part.id ?? 0)) return 0
    kept(slot)
    return 1
  },

  renew(judging, part) {
    const { slot, nowUs } = open(judging, part)
    if (slot?.state?.code !== CONCURRENCY || part.limit.code !== CONCURRENCY) return 0
    if (!renew(part.limit, slot.state as ConcurrencyState, nowUs, part.id ?? 0)) return 0
    kept(slot)
    return 1
  },

  reset(judging, part) {
    const { slot, nowUs } = open(judging, part)
    if (slot === undefined) return 0
    const { state, mark } = slot
    const codec = state === undefined ? undefined : codecOf(state)
    // What is taken ahead stays so, and needs a state to be charged into.
    if (state !== undefined && codec?.spend !== undefined && mark !== undefined && mark.leases.length > 0) {
      codec.give(state, nowUs, codec.used(state, nowUs), 0, 0, false)
    } else slot.state = undefined
    mark?.holds.splice(0)
    kept(slot)
    return 0
  },

  block(judging, part, [durationUs = 0]) {
    const { slot, nowUs } = open(judging, part)
    const untilUs = nowUs + durationUs
    if (slot === undefined) {
      judging.slots.add(part, undefined, { ...newMark(), blockedUs: untilUs }, untilUs)
      return 0
    }
    const mark = markOf(slot)
    const before = mark.blockedUs > nowUs ? 1 : 0
    if (untilUs > mark.blockedUs) mark.blockedUs = untilUs
    kept(slot)
    return before
  },

  unblock(judging, part) {
    const { slot, nowUs } = open(judging, part)
    if (slot?.mark === undefined || slot.mark.blockedUs <= nowUs) return 0
    slot.mark.blockedUs = 0
    kept(slot)
    return 1
  },

  leave(judging, part, [ticket = 0]) {
    const { slot } = open(judging, part)
    if (slot?.mark === undefined || !leave(slot.mark, ticket)) return 0
    kept(slot)
    return 1
  },

  vacate(judging, part, args) {
    const { slot, nowUs } = open(judging, part)
    return slot === undefined ? 0 : vacate(slot, part, nowUs, args)
  },
}

/** The tickets of a check leave all its lines. */
function leaveAll({ parts, found }: Judging, ticket: number): void {
  for (let p = 0; p < parts.length; p++) {
    const slot = found[p]
    if (slot?.mark !== undefined && leave(slot.mark, ticket)) kept(slot)
  }
}

/** A ticket stands in all lines of a check. @returns false: in one too many do */
function standAll({ parts, found, slots, nowUs }: Judging, tillUs: number, ticket: number): boolean {
  for (let p = 0; p < parts.length; p++) {
    const { space, value, cost } = parts[p] as Part
    if (cost === 0) continue
    const waiter = { id: ticket, tillUs, units: cost }
    const slot = found[p]
    if (slot === undefined) {
      slots.add(parts[p] as Part, undefined, { ...newMark(), line: [waiter] }, tillUs)
      found[p] = slots.find(space, value)
      continue
    }
    if (!stand(markOf(slot), nowUs, waiter)) return false
    kept(slot)
  }
  return true
}

/** The key's place, with what has lapsed settled. */
function open({ slots, nowUs }: Judging, { space, value }: Part): { slot: Slot | undefined; nowUs: number } {
  return { slot: settled(slots.find(space, value)), nowUs }
}

/** An id that is settled, for as long as a repetition may come. */
function known(id: number, fromUs: number): Hold {
  return {
    lapseUs: fromUs < MAX_EXACT - KNOWN_US ? fromUs + KNOWN_US : MAX_EXACT,
    id,
    units: 0,
    receiptUs: 0,
    chargedUs: 0,
  }
}
