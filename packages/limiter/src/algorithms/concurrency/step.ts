import { CONCURRENCY } from '../codes.ts'
import { countUntil } from '../list.ts'

/** The arithmetic of slots. `concurrency.lua` is its twin: same names, same order, same steps. */
export interface ConcurrencyState {
  readonly code: number
  /** When each slot lapses (µs), in that order. */
  lapses: number[]
  /** Who holds each. */
  ids: number[]
}

/** Forgets the slots that have lapsed. */
export function live(state: ConcurrencyState | undefined, nowUs: number): ConcurrencyState {
  if (state === undefined) return { code: CONCURRENCY, lapses: [], ids: [] }
  const lapsed = countUntil(state.lapses, nowUs)
  if (lapsed === 0) return state
  return { code: CONCURRENCY, lapses: state.lapses.slice(lapsed), ids: state.ids.slice(lapsed) }
}

/** Puts slots behind those that do not lapse later. */
export function insert(state: ConcurrencyState, lapseUs: number, id: number, count: number): void {
  const place = countUntil(state.lapses, lapseUs)
  state.lapses.splice(place, 0, ...Array.from({ length: count }, () => lapseUs))
  state.ids.splice(place, 0, ...Array.from({ length: count }, () => id))
}

/** Gives the slots of an id back. @returns how many it held */
export function release(state: ConcurrencyState, nowUs: number, id: number): number {
  const { lapses, ids } = live(state, nowUs)
  if (!ids.includes(id)) return 0
  const kept = ids.map((each) => each !== id)
  state.lapses = lapses.filter((_, i) => kept[i])
  state.ids = ids.filter((_, i) => kept[i])
  return ids.length - state.ids.length
}

/** Lets the slots of an id last for another ttl. @returns whether it held any */
export function renew(
  limit: { readonly periodUs: number },
  state: ConcurrencyState,
  nowUs: number,
  id: number,
): boolean {
  const count = release(state, nowUs, id)
  if (count === 0) return false
  insert(state, nowUs + limit.periodUs, id, count)
  return true
}
