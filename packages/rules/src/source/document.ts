import {
  type Alias,
  type Document,
  isAlias,
  isMap as isMapNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'
import { type Environment, expand } from './expand.ts'
import { Report } from './report.ts'
import { syntaxProblems } from './syntax-errors.ts'
import type { Path, Tree } from './tree.ts'

/** A rule file's text, parsed: its values with variables put in, and where each stands. */
export interface Source {
  /** undefined where the text is no YAML at all, or empty. */
  readonly tree: Tree | undefined
  readonly report: Report
  /** The parts that rules are made of, as the file has them: no variable is put in. Call it only where there is a tree. */
  rulesText(): string
}

/** Deep enough for any rule file; a chain of aliases cannot make us recurse for ever. */
const MAX_DEPTH = 32
/** How many values a file may have, counting what aliases repeat. */
const MAX_VALUES = 1_000_000

/** Parses the text. Problems go to the report; the tree holds what could be read. */
export function parseSource(text: string, file: string, env: Environment): Source {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: 'error',
  })
  const reader = new Reader(document, env)
  const report = new Report(file, {
    place: (path, part) => {
      const offset = reader.offsetOf(path, part)
      const { line, col } = lines.linePos(offset)
      return { line: Math.max(line, 1), column: Math.max(col, 1) }
    },
    written: (path) => reader.written(path),
    expanded: (path) => reader.expandedAt(path),
  })
  const syntax = syntaxProblems(document.errors, (offset) => lines.linePos(offset).line)
  for (const { offset, message } of syntax) {
    const { line, col } = lines.linePos(offset)
    report.addAt({ line, column: col }, 'HEADGATE_RULES_SYNTAX', keyOnLine(text, offset), message)
  }
  const empty = syntax.length > 0 || document.contents === null
  const tree = empty ? undefined : reader.read(document.contents, [], report)
  return { tree, report, rulesText: () => rulesTextOf(document) }
}

/** Aliases were counted before, so no limit is needed here. */
function rulesTextOf(document: Document): string {
  const file: unknown = document.toJS({ maxAliasCount: -1 })
  const { rules, dimensions, defaults, gateway } = (file ?? {}) as Record<string, unknown>
  const paths = gateway && (gateway as Record<string, unknown>).paths
  return JSON.stringify([rules, dimensions, defaults, paths])
}

/** The key before the place, so that an error of YAML's own has a path too. */
function keyOnLine(text: string, offset: number): string {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  return /^[\s-]*([A-Za-z][A-Za-z0-9_-]*):\s/.exec(text.slice(start, Math.max(offset, start)))?.[1] ?? ''
}

class Reader {
  private readonly document: Document
  private readonly env: Environment
  /** String nodes whose text came from the environment, at least in part. */
  private readonly expanded = new WeakSet<Node>()
  /** What each alias stands for. */
  private readonly targets = new Map<Alias, Node>()
  private values = 0

  constructor(document: Document, env: Environment) {
    this.document = document
    this.env = env
    const anchors = new Map<string, Node>()
    visit(document, {
      Node: (_key, node) => {
        if (!isAlias(node)) {
          if (node.anchor !== undefined) anchors.set(node.anchor, node)
          return
        }
        const target = anchors.get(node.source)
        if (target) this.targets.set(node, target)
      },
    })
  }

  read(node: unknown, path: Path, report: Report): Tree | undefined {
    const target = this.target(node)
    if (target === undefined) {
      const message = 'a value that starts with * reads as an alias, and there is no such anchor; quote the value'
      report.add(path, 'HEADGATE_RULES_SYNTAX', message)
      return undefined
    }
    if (path.length > MAX_DEPTH || ++this.values > MAX_VALUES) {
      if (this.values !== Number.POSITIVE_INFINITY)
        report.add(path, 'HEADGATE_RULES_SYNTAX', 'nested too deep, or too many values')
      this.values = Number.POSITIVE_INFINITY
      return undefined
    }
    if (target === null) return null
    if (target.tag !== undefined && !target.tag.startsWith('tag:yaml.org,2002:')) {
      report.add(path, 'HEADGATE_RULES_SYNTAX', 'a value that starts with ! reads as a tag; quote the value')
      return undefined
    }
    if (isMapNode(target)) return this.readMap(target, path, report)
    if (isSeq(target)) return target.items.map((item, i) => this.read(item, [...path, i], report) ?? null)
    return this.readScalar(target, path, report)
  }

  private readMap(node: YAMLMap, path: Path, report: Report): Tree {
    const map = new Map<string, Tree>()
    for (const pair of node.items) {
      const key = keyText(pair)
      if (key === undefined) {
        report.add(path, 'HEADGATE_RULES_SYNTAX', 'a key is a list or a mapping; keys are plain text')
      } else if (map.has(key)) {
        report.addAt(
          report.source.place([...path, key], 'last-key'),
          'HEADGATE_RULES_DUPLICATE',
          [...path, key],
          'stands twice; keep one',
        )
      } else {
        const value = this.read(pair.value, [...path, key], report)
        if (value !== undefined) map.set(key, value)
      }
    }
    return map
  }

  private readScalar(node: Node, path: Path, report: Report): Tree | undefined {
    const value: unknown = isScalar(node) ? node.value : undefined
    if (typeof value !== 'string') {
      return typeof value === 'number' || typeof value === 'boolean' ? value : null
    }
    const { text, expanded, problem } = expand(value, this.env)
    if (expanded) this.expanded.add(node)
    if (problem === undefined) return text
    report.add(path, 'HEADGATE_RULES_ENV', problem)
    return undefined
  }

  /** What a node stands for: an alias's anchor, itself, null for nothing; undefined for an unknown alias. */
  private target(node: unknown): Node | null | undefined {
    if (node === null || node === undefined) return null
    return isAlias(node) ? this.targets.get(node) : (node as Node)
  }

  private nodeAt(path: Path): Node | null | undefined {
    let node = this.target(this.document.contents)
    for (const step of path) {
      if (isMapNode(node)) {
        const pair = pairOf(node, step)
        node = pair === undefined ? undefined : this.target(pair.value)
      } else if (isSeq(node)) node = this.target(node.items[step as number])
      else return undefined
    }
    return node
  }

  /** Where a value or its key begins. What is not there is placed at what should hold it. */
  offsetOf(path: Path, part: 'key' | 'value' | 'last-key'): number {
    const step = path.at(-1)
    if (step === undefined) return this.document.contents?.range?.[0] ?? 0
    const parent = this.nodeAt(path.slice(0, -1))
    if (isMapNode(parent)) {
      const pair = pairOf(parent, step, part === 'last-key')
      const node = (part === 'value' ? (pair?.value ?? pair?.key) : pair?.key) as Node | undefined
      if (node?.range) return node.range[0]
    }
    if (isSeq(parent)) {
      const node = parent.items[step as number] as Node | undefined
      if (node?.range) return node.range[0]
    }
    return this.offsetOf(path.slice(0, -1), 'value')
  }

  expandedAt(path: Path): boolean {
    const node = this.nodeAt(path)
    return node !== null && node !== undefined && this.expanded.has(node)
  }

  /** A value as the file has it: variables not put in. */
  written(path: Path): string | undefined {
    const node = this.nodeAt(path)
    if (node === null) return 'nothing'
    if (isMapNode(node)) return 'a mapping'
    if (isSeq(node)) return 'a list'
    if (!isScalar(node)) return undefined
    if (typeof node.value === 'string') return JSON.stringify(node.value)
    return node.value === null ? 'nothing' : (node.source ?? String(node.value))
  }
}

function keyText(pair: Pair): string | undefined {
  const key = pair.key
  if (key === null) return ''
  return isScalar(key) ? (typeof key.value === 'string' ? key.value : (key.source ?? '')) : undefined
}

function pairOf(map: YAMLMap, step: string | number, last = false): Pair | undefined {
  return last ? map.items.findLast((pair) => keyText(pair) === step) : map.items.find((pair) => keyText(pair) === step)
}
