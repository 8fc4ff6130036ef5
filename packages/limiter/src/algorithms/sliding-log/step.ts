import { SLIDING_LOG } from '../codes.ts'
import { countUntil } from '../list.ts'

/**
 * The sliding log's arithmetic. `sliding-log.lua` is its twin: same names, same order, same numbered
 * steps.
 *
 * A run is what was charged at one instant. It lapses one period later; where the period was made longer, runs up to
 * `priorUs` lapse after the former one, as they would have.
 */

export interface LogState {
  readonly code: number
  /** The period that the state was written under. */
  periodUs: number
  /** The newest run that goes by a former, shorter period, and that period; 0, 0: none does. */
  priorUs: number
  priorPeriodUs: number
  /** Units ever charged before the first run. */
  base: number
  /** The instant of each run, ascending. */
  instants: number[]
  /** Units ever charged, with those of the run. */
  totals: number[]
}

/** Totals begin anew above this. */
export const MAX_TOTAL = 2 ** 52

export function newLog(periodUs: number): LogState {
  return { code: SLIDING_LOG, periodUs, priorUs: 0, priorPeriodUs: 0, base: 0, instants: [], totals: [] }
}

/** Units ever charged up to a run; up to none: the base. */
export function totalAt({ base, totals }: LogState, place: number): number {
  return place < 0 ? base : (totals[place] as number)
}

/** How many runs have lapsed. */
export function lapsedRuns({ periodUs, priorUs, priorPeriodUs, instants }: LogState, nowUs: number): number {
  let edgeUs = nowUs - periodUs
  if (priorPeriodUs > 0) {
    const formerUs = nowUs - priorPeriodUs < priorUs ? nowUs - priorPeriodUs : priorUs
    if (formerUs > edgeUs) edgeUs = formerUs
  }
  return countUntil(instants, edgeUs)
}

export function unitsUsed(state: LogState, nowUs: number): number {
  return totalAt(state, state.totals.length - 1) - totalAt(state, lapsedRuns(state, nowUs) - 1)
}

/** The instant at which a run lapses. */
export function lapseOf({ instants, periodUs, priorUs, priorPeriodUs }: LogState, place: number): number {
  const atUs = instants[place] as number
  return atUs + (priorPeriodUs > 0 && atUs <= priorUs ? priorPeriodUs : periodUs)
}

/** The instant at which at most `room` units are in use, where there are more now. */
export function fitsAt(state: LogState, room: number): number {
  const total = totalAt(state, state.totals.length - 1)
  return lapseOf(state, countUntil(state.totals, total - room - 1))
}

/** The instant at which the last run lapses; 0: there is none. */
export function lastLapse(state: LogState): number {
  const count = state.instants.length
  return count > 0 ? lapseOf(state, count - 1) : 0
}

/** Whether the newest run is later than now. */
export function isFuture({ instants }: LogState, nowUs: number): boolean {
  const count = instants.length
  return count > 0 && (instants[count - 1] as number) > nowUs
}

/** The state under today's numbers. It shares its runs with the former, which stays as it is. */
export function under(former: LogState, limit: number, periodUs: number, nowUs: number): LogState {
  const state = { ...former }
  // 1. what is from the future is one run of now, and is at most an exhausted log
  if (isFuture(state, nowUs)) {
    const total = totalAt(state, state.totals.length - 1)
    const place = countUntil(state.instants, nowUs - 1)
    state.instants = [...state.instants.slice(0, place), nowUs]
    state.totals = [...state.totals.slice(0, place), total]
    if (total - limit > state.base) {
      state.base = total - limit
      const gone = countUntil(state.totals, state.base)
      state.instants = state.instants.slice(gone)
      state.totals = state.totals.slice(gone)
    }
    if (state.priorUs > nowUs) state.priorUs = nowUs
  }
  // 2. a longer period is for what comes, a shorter one for all
  const count = state.instants.length
  if (periodUs > state.periodUs && count > 0) {
    state.priorUs = state.instants[count - 1] as number
    if (state.priorPeriodUs === 0) state.priorPeriodUs = state.periodUs
  }
  state.periodUs = periodUs
  return count === 0 || state.priorPeriodUs >= periodUs ? { ...state, priorUs: 0, priorPeriodUs: 0 } : state
}

/** Forgets what has lapsed. */
export function trim(state: LogState, nowUs: number): LogState {
  const lapsed = lapsedRuns(state, nowUs)
  if (lapsed === state.instants.length) return newLog(state.periodUs)
  if (lapsed > 0) {
    state.base = totalAt(state, lapsed - 1)
    state.instants.splice(0, lapsed)
    state.totals.splice(0, lapsed)
  }
  if ((state.instants[0] as number) > state.priorUs) {
    state.priorUs = 0
    state.priorPeriodUs = 0
  }
  return state
}

/** Puts units at the end, into the run of this instant where there is one. */
export function append(state: LogState, nowUs: number, units: number): void {
  const { instants, totals } = state
  // 1. what is charged now goes by today's period, and so does what it is charged together with
  if (state.priorUs >= nowUs) state.priorUs = nowUs - 1
  // 2. the run
  const total = totalAt(state, totals.length - 1) + units
  const last = instants.length - 1
  if (last >= 0 && instants[last] === nowUs) {
    totals[last] = total
  } else {
    instants.push(nowUs)
    totals.push(total)
  }
  // 3. so many are charged only in years
  if (total > MAX_TOTAL) {
    const { base } = state
    state.base = 0
    for (let i = 0; i < totals.length; i++) totals[i] = (totals[i] as number) - base
  }
}

/** Takes units out of a live run. @returns how many */
export function giveFrom(state: LogState, place: number, units: number): number {
  const { instants, totals } = state
  const own = (totals[place] as number) - totalAt(state, place - 1)
  const back = units < own ? units : own
  // 1. less in those that follow, or more in those before: whichever are fewer
  if (2 * place < totals.length) {
    for (let i = 0; i < place; i++) totals[i] = (totals[i] as number) + back
    state.base += back
  } else {
    for (let i = place; i < totals.length; i++) totals[i] = (totals[i] as number) - back
  }
  // 2. a run of nothing is none
  if (back === own) {
    instants.splice(place, 1)
    totals.splice(place, 1)
  }
  return back
}

/** Takes units out of the newest runs, of those in use. @returns how many */
export function giveNewest(state: LogState, used: number, units: number): number {
  const { instants, totals } = state
  const back = units < used ? units : used
  const total = totalAt(state, totals.length - 1) - back
  // 1. runs that keep all of theirs
  const whole = countUntil(totals, total)
  // 2. and one that keeps a part
  const broken = whole < totals.length && total > totalAt(state, whole - 1)
  if (broken) totals[whole] = total
  instants.length = broken ? whole + 1 : whole
  totals.length = instants.length
  return back
}
