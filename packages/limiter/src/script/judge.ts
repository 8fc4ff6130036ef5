import { codecOf } from '../algorithms/index.ts'
import type { Limit, State } from '../limit.ts'
import type { Check, Follower, Part, Verdict } from '../store.ts'
import { blank, type Filled, judging, keep, kept, type Slot, type Slots, settled, unborn } from './judging.ts'
import { leasedUnits, waitedFor } from './marks.ts'
import { JUDGED, ON_KEYS } from './operations.ts'
import { outdate } from './places.ts'

/**
 * Judges one check: the TypeScript half of `judge.lua`, same steps, same numbers.
 * @param verdict is filled in: its view receives the views of the parts, one after the other, after the charge where
 * there was one
 */
export function judge(check: Check, slots: Slots, nowUs: number, verdict: Filled): void {
  const view = verdict.view as number[]
  judging.check = check
  judging.slots = slots
  judging.nowUs = nowUs
  judging.view = view
  judging.parts = check.parts
  judging.result = 0
  judging.waits = false
  verdict.nowUs = nowUs
  verdict.blockedPart = -1
  verdict.blockedUs = 0
  verdict.receiptUs = 0
  verdict.followers = undefined
  const { operation } = check
  const onKeys = operation === undefined ? undefined : ON_KEYS[operation.name]
  if (operation !== undefined && onKeys !== undefined) {
    for (let p = 0; p < check.parts.length; p++) view[p] = onKeys(judging, check.parts[p] as Part, operation.args)
    verdict.allowed = true
    verdict.result = 0
    return
  }
  if (operation !== undefined) JUDGED[operation.name]?.before?.(judging, operation.args)
  const ticket = operation?.name === 'book' ? operation.args[1] : 0
  const admitted = openAll(verdict, ticket)
  let charge = verdict.blockedUs === 0 && admitted
  verdict.allowed = charge
  if (operation !== undefined) {
    charge = (JUDGED[operation.name] as (typeof JUDGED)[string]).judge(judging, operation.args, verdict)
    // what is charged has its place, now or later
    if (charge) judging.fits.fill(true)
  }
  verdict.result = judging.result
  if (!check.peek && charge) chargeAll()
  if (check.followers !== undefined)
    verdict.followers = follow(
      check.followers,
      check,
      verdict.blockedUs > 0 || judging.waits || (verdict.allowed && !charge),
    )
  // What was reserved before stays so.
  if (verdict.allowed) unblock(verdict)
}

function unblock(verdict: Filled): void {
  verdict.blockedPart = -1
  verdict.blockedUs = 0
}

// 4.2 open every limit, also behind one that refuses: the caller is told the longest wait
function openAll(verdict: Filled, ticket = 0): boolean {
  const { parts, nowUs, view, slots } = judging
  let admitted = true
  let at = 0
  for (let p = 0; p < parts.length; p++) {
    const part = parts[p] as Part
    const slot = settled(slots.find(part.space, part.value))
    judging.found[p] = slot
    judging.at[p] = at
    judging.cost[p] = part.cost
    if (slot?.mark !== undefined) {
      if (slot.mark.blockedUs > nowUs && slot.mark.blockedUs > verdict.blockedUs) {
        verdict.blockedUs = slot.mark.blockedUs
        verdict.blockedPart = p
      }
    }
    const behind = behindWhom(part, slot, ticket)
    judging.behind[p] = behind
    const fits = open(part, slot, view, at, behind)
    judging.fits[p] = fits
    if (!fits) admitted = false
    at += part.limit.viewSize
  }
  return admitted
}

/** What others wait for, who stand before the ticket (0: all do), and what is taken ahead. */
function behindWhom({ limit }: Part, slot: Slot | undefined, ticket: number): number {
  const mark = slot?.mark
  if (mark === undefined || (mark.line.length === 0 && mark.leases.length === 0)) return 0
  return Math.min(waitedFor(mark.line, judging.nowUs, ticket) + leasedUnits(mark), limit.capacity)
}

/** @param behind units that count as used, since others wait for them or took them ahead */
function open(part: Part, slot: Slot | undefined, view: number[], at: number, behind: number): boolean {
  const { limit, space, cost } = part
  const { nowUs, check } = judging
  let state = slot?.state
  if (state === undefined && limit.startsEmpty === true) state = unborn(limit, space)
  let ahead: boolean
  if (state !== undefined && state.code !== limit.code) {
    const other = codecOf(state)
    limit.adopt(other.used(state, nowUs), nowUs, view, at)
    ahead = other.ahead(state, nowUs, limit.spanUs)
  } else {
    ahead = limit.open(state, nowUs, view, at, cost + behind)
  }
  if (slot !== undefined && !check.peek && cost > 0) outdate(slot, limit, ahead)
  // what must be repaired is repaired by a refusal too, but never by who only asks, nor by a limit of 0
  if (ahead && !check.peek && cost > 0 && slot !== undefined && limit.admits(view, at, 0)) {
    keep(slot, part, limit.close(view, at, nowUs, state))
  }
  if (behind > 0) limit.withhold(view, at, behind)
  const fits = limit.admits(view, at, cost)
  if (!fits && state !== undefined && !ahead && cost <= limit.capacity) postpone(limit, state, view, at, cost, behind)
  return fits
}

/** What goes by other numbers has room at an instant of its own. */
function postpone(limit: Limit, state: State, view: number[], at: number, cost: number, behind: number): void {
  if (state.code === limit.code && limit.wrote(state)) return
  const { nowUs } = judging
  const room = Math.max(0, limit.capacity - cost - behind)
  // What others hold comes back at an instant that nobody knows: not now, at least.
  limit.postpone(view, at, nowUs, cost, Math.max(1, codecOf(state).roomAfterUs(state, nowUs, room)))
}

// 4.4 charge all of them
function chargeAll(): void {
  const { check, parts, found, at, cost, nowUs, view } = judging
  const charged = check.operation === undefined ? undefined : JUDGED[check.operation.name]?.charged
  for (let p = 0; p < parts.length; p++) {
    const units = cost[p] as number
    if (units === 0) continue
    const part = parts[p] as Part
    const { limit, id = 0 } = part
    const slot = found[p]
    // what others wait for is nothing that was taken
    const behind = judging.behind[p] as number
    if (behind > 0) limit.withhold(view, at[p] as number, -behind)
    const state = limit.take(slot?.state, nowUs, view, at[p] as number, units, id)
    const place = keep(slot, part, state)
    if (charged !== undefined) {
      charged(judging, p, place, check.operation?.args as readonly number[])
      kept(place)
    }
  }
}

// what goes by the verdict of the enforced limits; nothing is charged where these are blocked, or were charged before
function follow(followers: readonly Follower[], check: Check, uncharged: boolean): Verdict[] {
  const enforcedFits = judging.fits.slice(0, check.parts.length)
  return followers.map(({ kind, parts, places }) => {
    const view: number[] = []
    const verdict: Filled = blank(view)
    judging.check = { parts, peek: check.peek }
    judging.parts = parts
    judging.view = view
    const admitted = openAll(verdict)
    verdict.nowUs = judging.nowUs
    verdict.allowed = admitted && verdict.blockedUs === 0
    const listed = (p: number) => places.includes(p)
    const wanted =
      kind === 'penalty'
        ? enforcedFits.some((fits, p) => !fits && listed(p))
        : enforcedFits.every((fits, p) => fits || listed(p))
    if (!check.peek && verdict.allowed && wanted && !uncharged) chargeAll()
    return verdict
  })
}
