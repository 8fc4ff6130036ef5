import { InvalidArgumentError, show } from './errors.ts'

/**
 * Refuses what is no object, and an option that does not exist: a misspelt one would silently do nothing.
 * @param owner the function whose options they are; the error names `owner.option`
 */
export function refuseUnknown(options: unknown, known: readonly string[], owner: string): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidArgumentError(owner, `${show(options)} is not an object with ${known.join(', ')}`)
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new InvalidArgumentError(`${owner}.${name}`, `no such option; there are ${known.join(', ')}`)
    }
  }
}
