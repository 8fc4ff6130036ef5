import { MARKED } from '../algorithms/codes.ts'
import { codecOf, decodeState, encodeState } from '../algorithms/index.ts'
import type { State } from '../limit.ts'

/**
 * What stands before a state under the same key: until when the key is blocked, units that are held, who waits in line,
 * and units that were taken ahead. `marks.lua` is its twin.
 */
export interface Mark {
  /** The instant at which the block ends; 0: none. */
  blockedUs: number
  /** In the order in which they lapse. */
  readonly holds: Hold[]
  /** Who waits, in the order in which they came. */
  line: Waiter[]
  /** In the order in which they end. */
  readonly leases: Lease[]
}

/** A ticket in line. */
export interface Waiter {
  readonly id: number
  /** Until when it counts (µs). */
  readonly tillUs: number
  /** Units that it waits for. */
  readonly units: number
}

/** Units that somebody may use before it says that it did. They count as used, and do not drain until then. */
export interface Lease {
  /** When what is not reported by then counts as used (µs). */
  readonly tillUs: number
  readonly id: number
  readonly units: number
}

/** Units that were taken under an id. */
export interface Hold {
  readonly lapseUs: number
  readonly id: number
  /** 0: settled, and kept to know a repetition. */
  readonly units: number
  readonly receiptUs: number
  readonly chargedUs: number
}

/** The most holds under one key. */
const MAX_HOLDS = 4096
/** How many that have lapsed are settled in one call. */
const MAX_SETTLED = 64
/** A hold of this id is none: it says as its receipt since when another algorithm counts, while receipts of before may come. */
const CHANGED = -6004799503160661
/** A hold of this id is a place in line that was given up (see `places.ts`). */
export const VACANT = -7505999378950826
/** The most of these under one key. */
export const MAX_VACANT = 16
/** The most tickets in one line. */
const MAX_TICKETS = 1024
/** The most leases of one key. */
const MAX_LEASES = 1024
/** How long a lease lasts, in µs, unless its window is over before. One that would last longer is of another clock. */
export const LEASE_US = 1_000_000
/** All leases of a key together hold at most this part of its capacity. */
const LEASED_SHARE = 16

export function newMark(): Mark {
  return { blockedUs: 0, holds: [], line: [], leases: [] }
}

/** The most units of a budget that may be taken ahead, by everybody together. */
export function mostLeased(capacity: number): number {
  return Math.floor(capacity / LEASED_SHARE)
}

/** Units that are taken ahead. */
export function leasedUnits(mark: Mark | undefined): number {
  let units = 0
  if (mark !== undefined) for (const lease of mark.leases) units += lease.units
  return units
}

/** Ends the lease of an id. @returns its units; 0: there is none */
export function takeLease(mark: Mark | undefined, id: number): number {
  const place = mark === undefined ? -1 : mark.leases.findIndex((each) => each.id === id)
  return place < 0 ? 0 : ((mark as Mark).leases.splice(place, 1)[0] as Lease).units
}

/** Whether nobody more can take units ahead. */
export function isLeasedOut(mark: Mark | undefined): boolean {
  return mark !== undefined && mark.leases.length >= MAX_LEASES
}

/** Puts a lease behind those that do not end later. */
export function addLease({ leases }: Mark, lease: Lease): void {
  let place = leases.length
  while (place > 0 && (leases[place - 1] as Lease).tillUs > lease.tillUs) place -= 1
  leases.splice(place, 0, lease)
}

/** Charges units at an instant that may be past. */
export function spend(state: State | undefined, atUs: number, units: number): void {
  if (state !== undefined && units > 0) codecOf(state).spend?.(state, atUs, units)
}

/** The place of the settled hold that gives way where there are as many as may be; −1: none does. */
function settledPlace({ holds }: Mark): number {
  return holds.findIndex(({ id, units }) => units === 0 && id !== VACANT)
}

/** Whether nothing more can be held. */
export function isCrowded(mark: Mark | undefined): boolean {
  return mark !== undefined && mark.holds.length >= MAX_HOLDS && settledPlace(mark) < 0
}

/** Puts a hold behind those that do not lapse later. */
export function hold(mark: Mark, entry: Hold): void {
  const { holds } = mark
  const over = holds.length >= MAX_HOLDS ? settledPlace(mark) : -1
  if (over >= 0) holds.splice(over, 1)
  insert(mark, entry)
}

export function insert({ holds }: Mark, entry: Hold): void {
  let place = holds.length
  while (place > 0 && (holds[place - 1] as Hold).lapseUs > entry.lapseUs) place -= 1
  holds.splice(place, 0, entry)
}

export function findHold(mark: Mark | undefined, id: number): number {
  return mark === undefined ? -1 : mark.holds.findIndex((each) => each.id === id)
}

/** Units that those wait for who came before the ticket (0: everybody). */
export function waitedFor(line: readonly Waiter[], nowUs: number, ticket: number): number {
  let units = 0
  for (const waiter of line) {
    if (waiter.id === ticket) break
    if (waiter.tillUs > nowUs) units += waiter.units
  }
  return units
}

/** Takes a place in line, or keeps it. @returns false: too many wait */
export function stand(mark: Mark, nowUs: number, waiter: Waiter): boolean {
  const line = mark.line.filter(({ tillUs }) => tillUs > nowUs)
  const place = line.findIndex(({ id }) => id === waiter.id)
  if (place < 0 && line.length >= MAX_TICKETS) return false
  line.splice(place < 0 ? line.length : place, place < 0 ? 0 : 1, waiter)
  mark.line = line
  return true
}

/** Leaves the line. @returns whether it stood there */
export function leave(mark: Mark, ticket: number): boolean {
  const place = mark.line.findIndex(({ id }) => id === ticket)
  if (place >= 0) mark.line.splice(place, 1)
  return place >= 0
}

/** Whether holds have lapsed, or leases ended, that are not settled. */
export function hasLapsed(mark: Mark | undefined, nowUs: number): mark is Mark {
  if (mark === undefined) return false
  const { holds, leases } = mark
  if (holds.length > 0 && (holds[0] as Hold).lapseUs <= nowUs) return true
  if (leases.length === 0) return false
  return (leases[0] as Lease).tillUs <= nowUs || (leases.at(-1) as Lease).tillUs > nowUs + LEASE_US
}

/** Since when the algorithm that counts does; 0: nothing is known of another. */
export function changedAtUs(mark: Mark | undefined): number {
  return mark?.holds[findHold(mark, CHANGED)]?.receiptUs ?? 0
}

/** Another algorithm counts from now on. What was charged before is in its count, but not where a receipt says. */
export function change(mark: Mark, former: State, nowUs: number): void {
  let lapseUs = nowUs + codecOf(former).lifetimeUs(former, nowUs)
  if (lapseUs === nowUs) return
  const place = findHold(mark, CHANGED)
  if (place >= 0) lapseUs = Math.max(lapseUs, (mark.holds.splice(place, 1)[0] as Hold).lapseUs)
  insert(mark, { lapseUs, id: CHANGED, units: 1, receiptUs: nowUs, chargedUs: 0 })
}

/** Gives back by a receipt of a charge, or without one. */
export function giveBack(
  state: State,
  changedUs: number,
  nowUs: number,
  { units, receiptUs, chargedUs }: Pick<Hold, 'units' | 'receiptUs' | 'chargedUs'>,
  again: boolean,
): number {
  if (receiptUs > 0 && chargedUs < changedUs) return 0
  return codecOf(state).give(state, nowUs, units, receiptUs, chargedUs, again)
}

/** Leases that have ended are charged at their ends; none lasts longer than it may from now. */
function endLeases(state: State | undefined, { leases }: Mark, nowUs: number): void {
  let ended = 0
  for (const { tillUs, units } of leases) {
    if (tillUs > nowUs) break
    spend(state, tillUs, units)
    ended += 1
  }
  if (ended > 0) leases.splice(0, ended)
  const latestUs = nowUs + LEASE_US
  for (let i = leases.length - 1; i >= 0 && (leases[i] as Lease).tillUs > latestUs; i--) {
    leases[i] = { ...(leases[i] as Lease), tillUs: latestUs }
  }
}

/** Leases that have ended are charged; then holds that have lapsed give back what has not drained. */
export function settle(state: State | undefined, mark: Mark, nowUs: number): void {
  endLeases(state, mark, nowUs)
  let lapsed = 0
  const changedUs = changedAtUs(mark)
  for (const each of mark.holds) {
    if (each.lapseUs > nowUs || lapsed === MAX_SETTLED) break
    if (state !== undefined && each.units > 0 && each.id !== VACANT) giveBack(state, changedUs, nowUs, each, false)
    lapsed += 1
  }
  if (lapsed > 0) mark.holds.splice(0, lapsed)
}

/** Whether there is nothing in it that means anything. */
export function isEmpty(mark: Mark | undefined, nowUs: number): boolean {
  if (mark === undefined) return true
  if (mark.blockedUs > nowUs || mark.holds.length > 0 || mark.leases.length > 0) return false
  return mark.line.every(({ tillUs }) => tillUs <= nowUs)
}

/** The instant at which state and mark mean nothing any more. */
export function unusedAtUs(state: State | undefined, mark: Mark | undefined, nowUs: number): number {
  let at = state === undefined ? nowUs : nowUs + codecOf(state).lifetimeUs(state, nowUs)
  if (mark === undefined) return at
  if (mark.blockedUs > at) at = mark.blockedUs
  const lapseUs = mark.holds.at(-1)?.lapseUs ?? 0
  if (lapseUs > at) at = lapseUs
  for (const { tillUs } of mark.line) if (tillUs > at) at = tillUs
  const leasedUs = leasesUnusedAtUs(state, mark)
  return leasedUs > at ? leasedUs : at
}

/** When what is taken ahead means nothing any more if all of it is used, and charged at the last end; 0: nothing is. */
function leasesUnusedAtUs(state: State | undefined, mark: Mark): number {
  const tillUs = mark.leases.at(-1)?.tillUs ?? 0
  if (tillUs === 0 || state === undefined) return tillUs
  const after = { ...state }
  spend(after, tillUs, leasedUnits(mark))
  return tillUs + codecOf(after).lifetimeUs(after, tillUs)
}

/** How much of its budget a counter has used, from 0; from 1: exhausted, blocked, or held. */
export function usedShare({ state, mark }: Stored, capacity: number, nowUs: number): number {
  if (!isEmpty(mark, nowUs)) return 1
  return state === undefined ? 0 : codecOf(state).used(state, nowUs) / capacity
}

/** What Redis stores under a key. */
export interface Stored {
  readonly state: State | undefined
  readonly mark: Mark | undefined
}

const HEAD = 33
const HOLD = 40
const TICKET = 24
const LEASE = 24

/** Reads what is stored under a key; undefined: garbage. */
export function decodeStored(raw: Buffer): Stored | undefined {
  if (raw[0] !== MARKED) {
    const state = decodeState(raw)
    return state === undefined ? undefined : { state, mark: undefined }
  }
  if (raw.length < HEAD) return undefined
  const blockedUs = raw.readDoubleBE(1)
  const count = raw.readDoubleBE(9)
  const waiting = raw.readDoubleBE(17)
  const leased = raw.readDoubleBE(25)
  const exact = [blockedUs, count, waiting, leased].every((x) => x >= 0 && Number.isSafeInteger(x))
  if (!exact || count > MAX_HOLDS + 1 + MAX_VACANT || waiting > MAX_TICKETS || leased > MAX_LEASES) return undefined
  const lineAt = HEAD + count * HOLD
  const leasesAt = lineAt + waiting * TICKET
  const restAt = leasesAt + leased * LEASE
  if (raw.length < restAt) return undefined
  const holds = Array.from({ length: count }, (_, i): Hold => {
    const number = (place: number) => raw.readDoubleBE(HEAD + i * HOLD + place * 8)
    return { lapseUs: number(0), id: number(1), units: number(2), receiptUs: number(3), chargedUs: number(4) }
  })
  const triple = (at: number): Waiter & Lease => {
    return { tillUs: raw.readDoubleBE(at), id: raw.readDoubleBE(at + 8), units: raw.readDoubleBE(at + 16) }
  }
  const line = Array.from({ length: waiting }, (_, i) => triple(lineAt + i * TICKET))
  const leases = Array.from({ length: leased }, (_, i) => triple(leasesAt + i * LEASE))
  const rest = raw.subarray(restAt)
  const state = rest.length === 0 ? undefined : decodeState(rest)
  if (rest.length > 0 && state === undefined) return undefined
  return { state, mark: { blockedUs, holds, line, leases } }
}

/** What is stored for a state and what stands before it. */
export function encodeStored({ state, mark }: Stored): Buffer {
  const raw = state === undefined ? Buffer.alloc(0) : encodeState(state)
  if (mark === undefined) return raw
  const { blockedUs, holds, line, leases } = mark
  const numbers = [
    ...[blockedUs, holds.length, line.length, leases.length],
    ...holds.flatMap(({ lapseUs, id, units, receiptUs, chargedUs }) => [lapseUs, id, units, receiptUs, chargedUs]),
    ...[...line, ...leases].flatMap(({ tillUs, id, units }) => [tillUs, id, units]),
  ]
  const head = Buffer.alloc(1 + numbers.length * 8)
  head.writeUInt8(MARKED, 0)
  for (const [i, number] of numbers.entries()) head.writeDoubleBE(number, 1 + i * 8)
  return Buffer.concat([head, raw])
}
