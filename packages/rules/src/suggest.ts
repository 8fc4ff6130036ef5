import { distance } from 'fastest-levenshtein'

/** Names are shorter; a longer word is no slip of a finger. */
const MAX_WORD = 100

/** The option that a word was probably meant to be; undefined where none is close. */
export function closest(word: string, options: Iterable<string>): string | undefined {
  if (word.length > MAX_WORD) return undefined
  const lower = word.toLowerCase()
  let best: string | undefined
  let least = Math.max(1, Math.floor(lower.length / 3)) + 1
  for (const option of options) {
    const steps = stepsBetween(lower, option.toLowerCase())
    if (steps < least && steps < option.length) {
      least = steps
      best = option
    }
  }
  return best
}

/** Letters added, left out or exchanged; two neighbours that changed places are one step. */
function stepsBetween(word: string, option: string): number {
  let least = distance(word, option)
  if (least > 3) return least
  for (let i = 1; i < word.length; i++) {
    const swapped = word.slice(0, i - 1) + word.charAt(i) + word.charAt(i - 1) + word.slice(i + 1)
    least = Math.min(least, distance(swapped, option) + 1)
  }
  return least
}

/** `; did you mean "x"`, or nothing. */
export function didYouMean(word: string | undefined, options: Iterable<string>): string {
  const option = word === undefined ? undefined : closest(word, options)
  return option === undefined ? '' : `; did you mean ${option}`
}
