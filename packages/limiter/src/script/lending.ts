import { MAX_EXACT } from '../algorithms/exact.ts'
import type { Part } from '../store.ts'
import { type JudgedOperation, type Judging, keep, kept, markOf, type Slot, settled } from './judging.ts'
import { addLease, isLeasedOut, LEASE_US, leasedUnits, mostLeased, spend, takeLease } from './marks.ts'

/** Units are lent ahead, reported and given back. The script's `operations.lua` is the twin, with the same steps. */
export const lease: JudgedOperation = {
  // 1. what its holder has used is charged; the rest is its own
  before(judging, [id = 0, , reported = 0]) {
    const { slots, nowUs, parts } = judging
    const { space, value } = parts[0] as Part
    const slot = settled(slots.find(space, value))
    const units = takeLease(slot?.mark, id)
    const spent = Math.min(reported, units)
    judging.unspent = units - spent
    if (slot === undefined || units === 0) return
    spend(slot.state, nowUs, spent)
    kept(slot)
  },

  judge(judging, [id = 0, wanted = 0], verdict) {
    const { limit } = judging.parts[0] as Part
    const { view, nowUs, unspent } = judging
    const mark = judging.found[0]?.mark
    // 2. what it may hold: no less than it may already have used, and no more than is free
    const free = Math.min(limit.room(view, 0), mostLeased(limit.capacity) - leasedUnits(mark))
    let units = wanted === 0 ? 0 : unspent
    const grants = limit.leases === true && verdict.blockedUs === 0 && !isLeasedOut(mark)
    if (grants && units < wanted && units < free) units = Math.min(wanted, free)
    // 3. a lease leaves a state to charge it into
    if (units > 0) {
      const tillUs = Math.min(nowUs + LEASE_US, limit.leaseEndUs?.(view, 0) ?? MAX_EXACT)
      const place = units > unspent ? written(judging) : (judging.found[0] as Slot)
      addLease(markOf(place), { tillUs, id, units })
      kept(place)
    }
    judging.result = units
    verdict.allowed = units > 0 && verdict.blockedUs === 0
    return false
  },
}

/** The place of a check's only limit, with a state under today's numbers. */
function written({ found, parts, view, nowUs, behind }: Judging): Slot {
  const part = parts[0] as Part
  const { limit } = part
  // What others wait for, or took ahead, is nothing that was taken.
  const [slot, others = 0] = [found[0], behind[0]]
  if (others > 0) limit.withhold(view, 0, -others)
  const place = keep(slot, part, limit.close(view, 0, nowUs, slot?.state))
  if (others > 0) limit.withhold(view, 0, others)
  return place
}
