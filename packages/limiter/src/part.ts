import { fixedWindow } from './algorithms/fixed-window/index.ts'
import type { LibraryFailurePolicy } from './decision.ts'
import { InvalidArgumentError, show } from './errors.ts'
import { EncodedKey, encodeParts, encodeValue } from './keys/index.ts'
import type { Limit } from './limit.ts'
import { refuseUnknown } from './options.ts'
import type { Follower, Part } from './store.ts'
import { spanOf } from './ways.ts'

interface Penalty {
  readonly refusals: number
  readonly withinMs: number
  readonly blockMs: number
}

/** One limit of a check, as callers of the engine give it. */
export interface CheckItem {
  /** The rule it belongs to; the counter's key begins with it. */
  readonly rule?: string | undefined
  /** The limit's name within the rule. */
  readonly name: string
  readonly limit: Limit
  /** The caller's value; several values are one composite key; `''` for a global limit. */
  readonly key: string | readonly string[] | EncodedKey
  /** Integer ≥ 0, default 1; 0 only asks. */
  readonly cost?: number | undefined
  /**
   * `enforced` (default): all of these admit, or none is charged. Those of one rule that are `shadow` or `candidate`
   * are judged beside them, on counters of their own, and never change the answer: a shadow rule as if it were
   * enforced too, a candidate as if it took the place of the rule's enforced limits of the same names.
   */
  readonly group?: 'enforced' | 'shadow' | 'candidate'
  /** Default `local`. */
  readonly onStoreFailure?: LibraryFailurePolicy | undefined
  /** `lease`: this process may take units ahead and decide from them; default `exact`. */
  readonly accuracy?: Accuracy | undefined
  /** Blocks the key for `blockMs` at the last of so many refusals by this limit within a time. */
  readonly penalty?: Penalty | undefined
  /** Of `acquire`: how long this limit lets wait; default: its `timeoutMs`. */
  readonly maxWaitMs?: number | undefined
}

/** Whether every decision asks the store, or units may be taken from it ahead. */
export type Accuracy = 'exact' | 'lease'

/** What names a part's counter: its key without the store's prefix. */
export function keyOf({ space, value }: Part): string {
  return space + value
}

/** The most limits in one check: it keeps a batch to what one call of the script can bear. */
export const MAX_PARTS = 1000
const GROUPS: readonly unknown[] = ['enforced', 'shadow', 'candidate'] satisfies CheckItem['group'][]
const POLICIES: readonly unknown[] = ['local', 'open', 'closed', 'throw'] satisfies LibraryFailurePolicy[]

/** The items of one check, validated. @throws InvalidArgumentError */
export function judgedOf(items: readonly CheckItem[]): { parts: Part[]; followers?: Follower[] } {
  refuseNoList(items)
  if (items.every(isPlain)) return { parts: distinct(items.map(partOf)) }
  const parts: Part[] = []
  const followers: Follower[] = []
  for (const item of items) {
    if (!isEnforced(item)) continue
    const part = partOf(item)
    if (item.penalty !== undefined) followers.push(penaltyOf(item.penalty, part, parts.length))
    parts.push(part)
  }
  distinct(parts)
  for (const item of items) {
    if (isEnforced(item)) continue
    const { rule, group } = item
    if (followers.some((each) => each.rule === rule && each.kind === group)) continue
    followers.push(followerOf(items, rule, group as 'shadow' | 'candidate', parts))
  }
  return { parts, followers }
}

/** The items of an operation that has no groups, validated. @throws InvalidArgumentError */
export function partsOf(items: readonly CheckItem[]): Part[] {
  refuseNoList(items)
  const parts = items.map(partOf)
  return distinct(parts.filter((_, i) => isEnforced(items[i] as CheckItem)))
}

function refuseNoList(items: readonly CheckItem[]): void {
  if (Array.isArray(items) && items.length > 0 && items.length <= MAX_PARTS) return
  const given = Array.isArray(items) ? `a list of ${items.length}` : show(items)
  throw new InvalidArgumentError('items', `${given} is not a list of 1 to ${MAX_PARTS} limits with their keys`)
}

/** Enforced, and nothing is judged beside it. */
function isPlain(item: CheckItem): boolean {
  return isEnforced(item) && item?.penalty === undefined
}

function isEnforced(item: CheckItem): boolean {
  return item?.group === undefined || item.group === 'enforced'
}

function followerOf(
  items: readonly CheckItem[],
  rule: string | undefined,
  kind: 'shadow' | 'candidate',
  enforced: readonly Part[],
): Follower {
  const parts: Part[] = []
  const places: number[] = []
  for (const item of items) {
    if (item.group !== kind || item.rule !== rule) continue
    const part = partOf(item)
    refuseSpecial(part, kind)
    parts.push(part)
    if (kind === 'shadow') continue
    for (let i = 0; i < enforced.length; i++) {
      if (enforced[i]?.rule === rule && enforced[i]?.name === part.name) places.push(i)
    }
  }
  // A candidate has counters of its own; a shadow limit on one that is enforced would charge it twice.
  distinct(kind === 'candidate' ? parts : [...enforced, ...parts])
  return { kind, rule, parts, places }
}

function refuseSpecial({ name, limit }: Part, kind: string): void {
  if (limit.holdsSlots !== true && limit.scope === undefined) return
  const problem = `${show(kind)} does not fit ${show(name)}: slots and limits of scope 'instance' are enforced`
  throw new InvalidArgumentError('group', problem)
}

/** By a rule's penalty, which is one object for all its checks. */
const penaltyLimits = new WeakMap<Penalty, Limit>()

function penaltyLimit(penalty: Penalty): Limit {
  let limit = penaltyLimits.get(penalty)
  if (limit === undefined) {
    limit = fixedWindow({ limit: penalty.refusals, period: penalty.withinMs, align: 'first-hit' })
    penaltyLimits.set(penalty, limit)
  }
  return limit
}

/** What counts the refusals of a limit, beside its counter. */
function penaltyOf(penalty: Penalty, refused: Part, place: number): Follower {
  const { rule, name, value, onStoreFailure } = refused
  if (refused.limit.scope !== undefined) {
    const problem = `does not fit ${show(name)}, a limit of scope 'instance': its refusals are counted nowhere`
    throw new InvalidArgumentError('penalty', problem)
  }
  const limit = penaltyLimit(penalty)
  const space = `${refused.space.slice(0, -1)}~penalty:`
  const part = { rule, name, limit, space, value, cost: 1, onStoreFailure, blockMs: penalty.blockMs }
  return { kind: 'penalty', rule, parts: [part], places: [place] }
}

/** What blocks must be known before the first refusal: a wrong number would be found by nobody but the blocked. */
function checkPenalty(penalty: Penalty, group: CheckItem['group']): void {
  refuseUnknown(penalty, ['refusals', 'withinMs', 'blockMs'], 'penalty')
  const { refusals, withinMs, blockMs } = penalty
  if (!Number.isSafeInteger(refusals) || refusals < 1) {
    const problem = `${show(refusals)} is not an integer from 1 to ${Number.MAX_SAFE_INTEGER}`
    throw new InvalidArgumentError('penalty.refusals', problem)
  }
  spanOf(withinMs, 'penalty.withinMs', 1)
  spanOf(blockMs, 'penalty.blockMs', 1)
  if (group !== 'enforced')
    throw new InvalidArgumentError('penalty', `does not fit group ${show(group)}: only enforced limits refuse`)
}

function distinct(parts: Part[]): Part[] {
  const twice = parts.length < FEW_PARTS ? parts.find(isBefore) : findTwice(parts)
  if (twice === undefined) return parts
  throw new InvalidArgumentError(
    'items',
    `two limits of the check share the counter ${show(twice.space + twice.value)}`,
  )
}

/** Below this, comparing each with each costs less than a set. */
const FEW_PARTS = 16

function isBefore(part: Part, index: number, parts: readonly Part[]): boolean {
  for (let i = 0; i < index; i++) {
    if (parts[i]?.space === part.space && parts[i]?.value === part.value) return true
  }
  return false
}

function findTwice(parts: readonly Part[]): Part | undefined {
  const keys = new Set<string>()
  return parts.find(({ space, value }) => keys.size === keys.add(space + value).size)
}

/** One item, validated, with its counter's key. @throws InvalidArgumentError */
export function partOf(item: CheckItem): Part {
  if (typeof item !== 'object' || item === null) {
    throw new InvalidArgumentError('items', `${show(item)} is not an object with name, limit and key`)
  }
  const { rule, name, limit, key, cost = 1, group = 'enforced', onStoreFailure = 'local' } = item
  if (limit?.wire === undefined) {
    throw new InvalidArgumentError(
      'limit',
      `${show(limit)} is not a limit; use tokenBucket({ … }), fixedWindow({ … }) …`,
    )
  }
  if (!GROUPS.includes(group)) throw new InvalidArgumentError('group', `${show(group)} is none of ${GROUPS.join(', ')}`)
  if (item.penalty !== undefined) checkPenalty(item.penalty, group)
  return {
    rule,
    name,
    limit,
    space: spaceOf(rule, name, group === 'candidate'),
    value: keyText(key, rule),
    cost: costOf(cost),
    onStoreFailure: policyOf(onStoreFailure),
    maxWaitMs: item.maxWaitMs === undefined ? undefined : spanOf(item.maxWaitMs, 'maxWaitMs', 0),
    accuracy: item.accuracy === undefined ? undefined : accuracyOf(item.accuracy),
  }
}

/** @throws InvalidArgumentError unless it is an integer ≥ 0 below 2^53 */
export function costOf(cost: unknown): number {
  if (typeof cost === 'number' && Number.isSafeInteger(cost) && cost >= 0) return cost
  throw new InvalidArgumentError('cost', `${show(cost)} is not an integer from 0 to ${Number.MAX_SAFE_INTEGER}`)
}

/** @throws InvalidArgumentError */
export function policyOf(policy: LibraryFailurePolicy): LibraryFailurePolicy {
  if (POLICIES.includes(policy)) return policy
  throw new InvalidArgumentError('onStoreFailure', `${show(policy)} is none of ${POLICIES.join(', ')}`)
}

/** @throws InvalidArgumentError */
export function accuracyOf(accuracy: Accuracy = 'exact'): Accuracy {
  if (accuracy === 'exact' || accuracy === 'lease') return accuracy
  throw new InvalidArgumentError('accuracy', `${show(accuracy)} is none of exact, lease`)
}

function keyText(key: unknown, rule: string | undefined): string {
  if (typeof key === 'string') return encodeValue(key)
  if (key instanceof EncodedKey) return key.text
  if (!Array.isArray(key) || key.length === 0 || !key.every((part) => typeof part === 'string')) {
    throw new InvalidArgumentError('key', `${show(key)} is not a string or a list of strings`)
  }
  // Without a rule a composite key could read like the key of a rule's limit.
  if (rule === undefined && key.length > 1) throw new InvalidArgumentError('key', 'a composite key needs a rule')
  return encodeParts(key)
}

const LIMIT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?:\+[A-Za-z0-9][A-Za-z0-9._-]{0,63})*$/
type Spaces = Map<string | undefined, Map<string, string>>
/** By rule and name: the spaces of names seen to be right. They come from configuration, so they are few. */
const spaces: Spaces = new Map()
const candidateSpaces: Spaces = new Map()
const MAX_SPACES = 10_000
let spacesKept = 0

/**
 * What begins the keys of a limit. A name cannot hold what separates the parts of a key, nor what marks a candidate, so
 * no two limits share one.
 */
function spaceOf(rule: string | undefined, name: string, candidate: boolean): string {
  const known = (candidate ? candidateSpaces : spaces).get(rule)?.get(name)
  return known ?? newSpace(rule, name, candidate)
}

function newSpace(rule: string | undefined, name: string, candidate: boolean): string {
  refuseBadName(name, 'name')
  if (rule !== undefined) refuseBadName(rule, 'rule')
  if (spacesKept++ >= MAX_SPACES) {
    spaces.clear()
    candidateSpaces.clear()
    spacesKept = 1
  }
  const own = candidate ? `${name}~candidate` : name
  const space = rule === undefined ? `${own}:` : `${rule}:${own}:`
  const all = candidate ? candidateSpaces : spaces
  all.set(rule, (all.get(rule) ?? new Map<string, string>()).set(name, space))
  return space
}

function refuseBadName(name: unknown, argument: string): void {
  if (typeof name === 'string' && LIMIT_NAME.test(name)) return
  throw new InvalidArgumentError(
    argument,
    `${show(name)} is not a name: a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -`,
  )
}
