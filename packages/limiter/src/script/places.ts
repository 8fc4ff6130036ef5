import { codecOf } from '../algorithms/index.ts'
import type { Limit } from '../limit.ts'
import type { Operation, Part } from '../store.ts'
import { type Judging, kept, markOf, type Slot } from './judging.ts'
import { changedAtUs, giveBack, type Hold, insert, MAX_VACANT, type Mark, VACANT } from './marks.ts'

/**
 * Places in line that were given up while others stood behind them: charged already, and for the next booking that fits.
 * `places.lua` is its twin: same names, same order, same numbered steps.
 *
 * Kept among the holds, under the id `VACANT`: `lapseUs` is when its charge has drained, `units` are free (0: taken again, or
 * come back; kept to know a repetition), `receiptUs` is its turn, `chargedUs` the ticket of who gave it up.
 */
function vacancies(mark: Mark | undefined): Hold[] {
  return mark === undefined ? [] : mark.holds.filter(({ id }) => id === VACANT)
}

function setUnits({ holds }: Mark, place: Hold, units: number): void {
  holds[holds.indexOf(place)] = { ...place, units }
}

/** Nobody takes what is free any more. @returns whether anything was */
export function voidPlaces({ mark }: Slot): boolean {
  const free = vacancies(mark).filter(({ units }) => units > 0)
  for (const each of free) setUnits(mark as Mark, each, 0)
  return free.length > 0
}

/** Turns are of the numbers that they were booked under, and of a clock that goes on. */
export function outdate(slot: Slot, limit: Limit, ahead: boolean): void {
  const { mark, state } = slot
  if (mark === undefined || state === undefined || mark.holds.length === 0) return
  if (!ahead && state.code === limit.code && limit.wrote(state)) return
  if (voidPlaces(slot)) kept(slot)
}

/** Takes the earliest place for the only part that comes within `mostUs`; undefined: there is none. */
export function takePlace(judging: Judging, mostUs: number): { turnUs: number; receiptUs: number } | undefined {
  const { found, nowUs, cost: costs } = judging
  const slot = found[0]
  const { limit, cost } = judging.parts[0] as Part
  for (const each of vacancies(slot?.mark)) {
    const { lapseUs, units, receiptUs: turnUs } = each
    if (cost === 0 || units < cost || turnUs <= nowUs || limit.divide === undefined) continue
    const { left, soonerUs, lessUs } = limit.divide(units - cost, turnUs - nowUs)
    if (turnUs - soonerUs - nowUs > mostUs) continue
    setUnits((slot as Slot).mark as Mark, each, left)
    kept(slot as Slot)
    // It was charged when it was booked.
    costs[0] = 0
    return { turnUs: turnUs - soonerUs, receiptUs: lapseUs - lessUs }
  }
  return undefined
}

/** Keeps one more; of too many, one that nobody can take gives way, else the earliest. */
function add(mark: Mark, nowUs: number, place: Hold): void {
  insert(mark, place)
  const places = vacancies(mark)
  if (places.length <= MAX_VACANT) return
  const spent = places.find((each) => each !== place && (each.units === 0 || each.receiptUs <= nowUs))
  mark.holds.splice(mark.holds.indexOf(spent ?? (places[0] as Hold)), 1)
}

/** @returns units that came back */
export function vacate(
  slot: Slot,
  { limit, cost, id: drainedUs = 0 }: Part,
  nowUs: number,
  [ticket = 0, chargedUs = 0, turnUs = 0]: Operation['args'],
): number {
  const { state } = slot
  // 1. once, and while there is anything of it
  if (state === undefined || cost === 0 || drainedUs <= nowUs) return 0
  if (vacancies(slot.mark).some((each) => each.chargedUs === ticket)) return 0
  // 2. what is no place to come of this counter gives back what has not drained
  let back = 0
  let units = cost
  const changedUs = changedAtUs(slot.mark)
  const stands =
    limit.divide !== undefined &&
    turnUs > nowUs &&
    chargedUs >= changedUs &&
    units <= limit.capacity &&
    state.code === limit.code &&
    limit.wrote(state)
  if (!stands || drainedUs > nowUs + codecOf(state).lifetimeUs(state, nowUs)) {
    back = giveBack(state, changedUs, nowUs, { units, receiptUs: drainedUs, chargedUs }, false)
    units = 0
  }
  // 3. it is free
  const mark = markOf(slot)
  add(mark, nowUs, { lapseUs: drainedUs, id: VACANT, units, receiptUs: turnUs, chargedUs: ticket })
  // 4. but comes back where nobody stands behind it, and so do those that are the last then
  for (const each of vacancies(mark).reverse()) {
    if (each.units === 0 || each.receiptUs <= nowUs) continue
    const charge = { units: each.units, receiptUs: each.lapseUs, chargedUs: nowUs }
    const whole = giveBack(state, changedUs, nowUs, charge, false)
    if (whole === 0) break
    setUnits(mark, each, 0)
    back += whole
  }
  kept(slot)
  return back
}
