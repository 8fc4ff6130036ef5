import { distance } from 'fastest-levenshtein'

/** The option that a word was probably meant to be; undefined where none is close. */
export function closest(word: string, options: Iterable<string>): string | undefined {
  const lower = word.toLowerCase()
  let best: string | undefined
  let least = Math.max(1, Math.floor(lower.length / 3)) + 1
  for (const option of options) {
    const steps = distance(lower, option.toLowerCase())
    if (steps < least && steps < option.length) {
      least = steps
      best = option
    }
  }
  return best
}

/** `; did you mean "x"`, or nothing. */
export function didYouMean(word: string | undefined, options: Iterable<string>): string {
  const option = word === undefined ? undefined : closest(word, options)
  return option === undefined ? '' : `; did you mean ${option}`
}
