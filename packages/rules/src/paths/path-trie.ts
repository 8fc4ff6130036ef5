import type { PathSettings } from './normalize.ts'
import { endOf, foldCase, type Pattern, readEscapes } from './pattern.ts'

interface Node<T> {
  readonly statics: Map<string, Node<T>>
  param: Node<T> | undefined
  /** Values of patterns that end here. */
  readonly ends: T[]
  /** Values of patterns that end here with `/*`. */
  readonly opens: T[]
}

const newNode = <T>(): Node<T> => ({ statics: new Map(), param: undefined, ends: [], opens: [] })

/**
 * Patterns with values. A look-up walks the path's segments, so its cost does not grow with the
 * number of patterns for other paths; where static and `:param` children both fit, it takes both.
 */
export class PathTrie<T> {
  private readonly root: Node<T> = newNode()
  private readonly settings: PathSettings

  constructor(settings: PathSettings) {
    this.settings = settings
  }

  add(pattern: Pattern, value: T): void {
    let node = this.root
    for (const segment of pattern.segments) {
      if (segment.kind === 'static') {
        const child: Node<T> = node.statics.get(segment.text) ?? newNode()
        node.statics.set(segment.text, child)
        node = child
      } else {
        node.param ??= newNode()
        node = node.param
      }
    }
    if (pattern.open) node.opens.push(value)
    else node.ends.push(value)
  }

  /** Adds the values for every path. */
  addEverywhere(value: T): void {
    this.root.opens.push(value)
  }

  /** Appends the values of all patterns that match a normalised path, in no particular order. */
  find(path: string, found: T[]): void {
    const folded = foldCase(path, this.settings)
    const end = endOf(path, this.settings)
    walk(this.root, folded, 1, end, folded.includes('%'), found)
  }

  matches(path: string): boolean {
    const found: T[] = []
    this.find(path, found)
    return found.length > 0
  }
}

/** `start` is where the next segment begins; past `end` there is none. */
function walk<T>(node: Node<T>, path: string, start: number, end: number, escapes: boolean, found: T[]): void {
  for (const value of node.opens) found.push(value)
  if (start > end || end === 0) {
    for (const value of node.ends) found.push(value)
    return
  }
  if (node.statics.size === 0 && node.param === undefined) return
  const slash = path.indexOf('/', start)
  const stop = slash < 0 || slash > end ? end : slash
  if (node.statics.size > 0) {
    const raw = path.slice(start, stop)
    const child = node.statics.get(escapes ? readEscapes(raw) : raw)
    if (child !== undefined) walk(child, path, stop + 1, end, escapes, found)
  }
  if (node.param !== undefined && stop > start) walk(node.param, path, stop + 1, end, escapes, found)
}
