import type { CompiledLimit, RuleFile } from '@headgate/rules'
import type { CheckItem, LimitStatus } from 'headgate'
import { waitText } from './wait-text.ts'

/** What the rule file says of a limit that is judged. */
export interface Written {
  readonly algorithm: string
  /** As it is written, with what belongs to its algorithm: `800/s burst 120`, `10 held at once, ttl 1m`. */
  readonly text: string
  /** Of calendar windows. */
  readonly timeZone?: string
  /** Each process counts for itself: what a store holds says nothing. */
  readonly scope?: 'instance'
}

/** The limit of an item as its rule file has it; its numbers may be those of an override. */
export function writtenOf(file: RuleFile, { rule, name, limit }: CheckItem): Written {
  const compiled = limitsOf(file, rule).find((each) => each.name === name)
  const numbers = [compiled, ...(compiled?.overrides ?? [])].find((each) => each?.limit === limit)
  const { algorithm, scope } = limit
  const { timeZone } = compiled ?? {}
  return { algorithm, text: numbers?.words ?? '', ...(timeZone && { timeZone }), ...(scope && { scope }) }
}

function limitsOf(file: RuleFile, rule: string | undefined): readonly CompiledLimit[] {
  return file.rules.find(({ name }) => name === rule)?.limits ?? []
}

/** What a limit holds, in the words of its algorithm. @param at the instant of the decision, in ms since 1970 */
export function stateText(status: LimitStatus, written: Written, at: number): string {
  if (written.scope === 'instance') return 'each instance counts for itself, not in the store'
  // Its waits would be those of the block.
  return status.blocked ? `blocked, ${amountText(status, written, at)}` : budgetText(status, written, at)
}

/** The same without its waits: `3 of 5 left`. */
export function amountText(status: LimitStatus, written: Written, at: number): string {
  return budgetText(status, written, at).replace(/,.*/, '')
}

function budgetText(status: LimitStatus, written: Written, at: number): string {
  const used = status.capacity - Math.floor(status.remaining)
  if (written.algorithm === 'concurrency') return heldText(status, used)
  if (written.algorithm === 'leaky-bucket') return lineText(status, used)
  return written.algorithm === 'fixed-window' ? windowText(status, written, at) : leftText(status)
}

/** When nothing of it will be used any more; empty where its state says so already. */
export function unusedText(status: LimitStatus, { algorithm, scope }: Written): string {
  if (scope === 'instance') return ''
  if (status.resetAfterMs === 0) return 'unused'
  if (algorithm === 'fixed-window' || algorithm === 'leaky-bucket') return ''
  return algorithm === 'concurrency'
    ? `free in ${waitText(status.resetAfterMs)} at the latest`
    : `unused in ${waitText(status.resetAfterMs)}`
}

/** When the window that is open ends, as ISO 8601; undefined: no window is. */
export function windowEnd(status: LimitStatus, { algorithm }: Written, at: number): string | undefined {
  if (algorithm !== 'fixed-window' || !(status.nextMs > 0) || status.nextMs === Number.POSITIVE_INFINITY)
    return undefined
  return new Date(Math.round(at + status.nextMs)).toISOString()
}

/** A limit as `--json` shows it. */
export function limitData(status: LimitStatus | undefined, written: Written, at: number) {
  const end = status && windowEnd(status, written, at)
  return { ...status, ...written, ...(end && { windowEndsAt: end }) }
}

/** `3 of 10 held, the first lapses in 41s` */
function heldText({ capacity, nextMs }: LimitStatus, held: number): string {
  return held === 0 ? `0 of ${capacity} held` : `${held} of ${capacity} held, the first lapses in ${waitText(nextMs)}`
}

/** `2 of 6 in line, the next waits 400ms` */
function lineText({ capacity, retryAfterMs, resetAfterMs }: LimitStatus, waiting: number): string {
  const line = `${waiting} of ${capacity} in line`
  if (waiting === 0 || capacity === 0) return line
  return retryAfterMs > 0 && retryAfterMs !== Number.POSITIVE_INFINITY
    ? `${line}, a place in ${waitText(retryAfterMs)}`
    : `${line}, the next waits ${waitText(resetAfterMs)}`
}

/** `3 of 5 left, window ends in 41s`, of a calendar `…, window ends in 3h 5m at 2026-12-01 00:00:00 Asia/Shanghai` */
function windowText(status: LimitStatus, written: Written, at: number): string {
  const left = `${Math.floor(status.remaining)} of ${status.capacity} left`
  const end = windowEnd(status, written, at)
  if (end === undefined) return left
  const { timeZone } = written
  const when = timeZone === undefined ? '' : ` at ${clockText(new Date(end), timeZone)}`
  return `${left}, window ends in ${waitText(status.nextMs)}${when}`
}

/** As ISO 8601 writes it, but on the clocks of the zone. */
function clockText(date: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  return `${format.format(date)} ${timeZone}`
}

/** `3 of 5 left, more in 180ms` */
export function leftText(status: LimitStatus): string {
  const { remaining, capacity, retryAfterMs, nextMs } = status
  const left = `${Math.floor(remaining)} of ${capacity} left`
  if (retryAfterMs > 0)
    return retryAfterMs === Number.POSITIVE_INFINITY ? left : `${left}, enough in ${waitText(retryAfterMs)}`
  return nextMs > 0 && nextMs !== Number.POSITIVE_INFINITY ? `${left}, more in ${waitText(nextMs)}` : left
}
