import type { Part } from '../../../store.ts'

/** Slots of a cluster. */
const SLOTS = 16_384
/** Callers are spread over so many of them: enough for every node to have its part, few enough for batches to stay batches. */
export const TAG_COUNT = 64

/** What stands in braces in a key, and the slot that it puts the key into. */
export interface Tag {
  readonly text: string
  readonly slot: number
}

/**
 * The tags, in the order of their slots: of each 256 slots that follow each other, one; its text is the least number that
 * falls there. Nodes have ranges of slots, so each has its share of the tags, give or take one.
 */
export const TAGS: readonly Tag[] = evenly()

/**
 * The place in {@link TAGS} of a counter: by the caller's value alone, so that all limits of one caller share a slot and
 * rules of many limits stay one call. A value that all callers share goes by its rule instead.
 */
export function tagOf({ space, value }: Pick<Part, 'space' | 'value'>): number {
  let hash = 0x811c9dc5
  const text = value === '' ? ruleIn(space) : value
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  // The highest bits: all of the text went into them.
  return hash >>> 26
}

/** The slot of a text: CRC-16/XMODEM of it. */
export function slotOf(text: string): number {
  let crc = 0
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc % SLOTS
}

/** `rule` of `rule:limit:`; what marks a candidate or a penalty is no part of it. */
function ruleIn(space: string): string {
  return space.slice(0, space.search(/[:~]/))
}

function evenly(): Tag[] {
  const tags: Tag[] = []
  let found = 0
  for (let number = 0; found < TAG_COUNT; number++) {
    const text = `${number}`
    const slot = slotOf(text)
    const place = Math.floor((slot * TAG_COUNT) / SLOTS)
    if (tags[place] !== undefined) continue
    tags[place] = { text, slot }
    found += 1
  }
  return tags
}
