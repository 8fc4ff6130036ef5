import type { LimitStatus } from 'headgate'
import { waitText } from './wait-text.ts'

const PERIODS: readonly (readonly [unit: string, ms: number])[] = [
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
]

/** A limit as rule files write it: `800/s burst 120`. */
export function rateText({ limit, capacity, periodMs }: Pick<LimitStatus, 'limit' | 'capacity' | 'periodMs'>): string {
  const rate = periodMs === undefined ? `${limit}` : `${limit}/${periodText(periodMs)}`
  return capacity === limit ? rate : `${rate} burst ${capacity}`
}

function periodText(ms: number): string {
  const [unit, unitMs] = PERIODS.find(([, each]) => ms % each === 0) ?? ['ms', 1]
  return ms === unitMs ? unit : `${ms / unitMs}${unit}`
}

/** `3 of 5 left, more in 180ms` */
export function leftText(status: LimitStatus): string {
  const { remaining, capacity, retryAfterMs, nextMs } = status
  const left = `${Math.floor(remaining)} of ${capacity} left`
  if (retryAfterMs > 0)
    return retryAfterMs === Number.POSITIVE_INFINITY ? left : `${left}, enough in ${waitText(retryAfterMs)}`
  return nextMs > 0 && nextMs !== Number.POSITIVE_INFINITY ? `${left}, more in ${waitText(nextMs)}` : left
}
