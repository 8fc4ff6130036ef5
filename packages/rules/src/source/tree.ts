/** A value of the rule file: what YAML's core schema gives, with mappings as Maps (a key may be `__proto__`). */
export type Tree = string | number | boolean | null | readonly Tree[] | ReadonlyMap<string, Tree>

/** Where a value stands: keys and indexes from the top of the file. */
export type Path = readonly (string | number)[]

export function isMap(tree: Tree | undefined): tree is ReadonlyMap<string, Tree> {
  return tree instanceof Map
}

export function isList(tree: Tree | undefined): tree is readonly Tree[] {
  return Array.isArray(tree)
}

const PLAIN_KEY = /^[A-Za-z0-9_-]+$/

/** A path as messages show it: `rules[0].limits[1].burst`, `overrides["free-*"]`. */
export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (PLAIN_KEY.test(step)) text += text === '' ? step : `.${step}`
    else text += `[${JSON.stringify(step)}]`
  }
  return text
}
