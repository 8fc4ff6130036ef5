import { type FSWatcher, watch } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { HeadgateError, refuseUnknown } from 'headgate'
import { digest, digestOf, parseRules, readText } from './load.ts'
import type { RuleFile } from './rule-file.ts'
import type { Environment } from './source/expand.ts'

export interface WatchOptions {
  /** A file that is right, whenever its text changed (and after every {@link RuleWatcher.reload}). What it throws goes to `onError`. */
  onLoad(file: RuleFile): void
  /** What is wrong with a changed file; the rules in use stay. Called once for one text. */
  onError(error: unknown): void
  /** What `${X}` is taken from; default `process.env`. */
  readonly env?: Environment
  /** The rules in use: only another text is news. Default: the file as it is when watching begins. */
  readonly current?: RuleFile
  /** How long the directory must be quiet before the file is read, in ms; default 100. */
  readonly settleMs?: number
  /** How often the file is read even without news of the directory, in ms; default 5000. */
  readonly pollMs?: number
}

export interface RuleWatcher {
  /** Reads the file now, and tells `onLoad` or `onError` also where its text is the same. Never rejects. */
  reload(): Promise<void>
  /** Leaves no timer and no watch behind; a read under way is not reported any more. */
  close(): Promise<void>
}

/**
 * Follows a rule file. It watches the directory, not the file, so that a file that is replaced (by an
 * editor's rename, or by a swapped symlink as in a Kubernetes ConfigMap) is still followed; and since
 * some file systems tell nothing, it also looks now and then. What counts is the text: a touched file
 * is no news, and a broken one never replaces the rules in use.
 */
export function watchRules(file: string, options: WatchOptions): RuleWatcher {
  refuseUnknown(options, ['onLoad', 'onError', 'env', 'current', 'settleMs', 'pollMs'], 'watchRules')
  return new Watcher(file, options)
}

class Watcher implements RuleWatcher {
  private readonly file: string
  private readonly options: WatchOptions
  private readonly settleMs: number
  private readonly watches = new Map<string, FSWatcher>()
  private readonly poll: NodeJS.Timeout
  private settle: NodeJS.Timeout | undefined
  /** When the stir began that is waiting for quiet, on `performance.now()`. */
  private stirredAtMs = 0
  private closed = false
  /** The digest of the text, or the message of the failure to read it, that was told last. */
  private told: string | undefined
  /** Whether the file could not be read a moment ago. */
  private absent = false
  /** Whether a look waits for its turn, or for an answer of the file system. */
  private looking = false
  /** Reads happen one after the other. */
  private queue: Promise<void>

  constructor(file: string, options: WatchOptions) {
    this.file = file
    this.options = options
    const { current, settleMs = 100, pollMs = 5000 } = options
    this.settleMs = settleMs
    this.told = current && digestOf(current)
    this.queue = this.begin()
    this.poll = setInterval(() => this.look(), pollMs)
    this.poll.unref()
  }

  reload(): Promise<void> {
    return this.inTurn(() => this.read(true))
  }

  async close(): Promise<void> {
    this.closed = true
    clearInterval(this.poll)
    clearTimeout(this.settle)
    // Not after a read that is under way: a file system that is gone may never answer it.
    for (const watcher of this.watches.values()) watcher.close()
    this.watches.clear()
  }

  private async begin(): Promise<void> {
    await this.follow()
    this.told ??= await this.textNow()
  }

  /** Never rejects: what a read throws goes to `onError`. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(async () => {
      if (this.closed) return
      await this.follow()
      await work()
    })
    return this.queue
  }

  /** Something moved: read when it is quiet, or when it has not been for ten times as long. */
  private stir(): void {
    if (this.closed) return
    const nowMs = performance.now()
    if (this.settle === undefined) this.stirredAtMs = nowMs
    else if (nowMs - this.stirredAtMs > 10 * this.settleMs) return
    clearTimeout(this.settle)
    this.settle = setTimeout(() => {
      this.settle = undefined
      void this.inTurn(() => this.read(false))
    }, this.settleMs)
    this.settle.unref()
  }

  /** The poll: a text that is news is read once more when it has settled, since it may be half written. */
  private look(): void {
    if (this.looking) return
    this.looking = true
    void this.inTurn(async () => {
      if ((await this.textNow()) !== this.told) this.stir()
    }).then(() => {
      this.looking = false
    })
  }

  private async textNow(): Promise<string> {
    try {
      return digest(await readText(this.file))
    } catch (error) {
      return String(error)
    }
  }

  private async read(always: boolean): Promise<void> {
    try {
      const text = await readText(this.file)
      const { env, onLoad } = this.options
      const news = digest(text)
      this.absent = false
      if (this.closed || (!always && news === this.told)) return
      this.told = news
      onLoad(parseRules(text, { file: this.file, ...(env ? { env } : {}) }))
    } catch (error) {
      this.fail(error, always)
    }
  }

  private fail(error: unknown, always: boolean): void {
    if (this.closed) return
    const unreadable = HeadgateError.is(error) && error.code === 'HEADGATE_RULES_FILE'
    if (unreadable && !always) {
      // A file that is being replaced may be gone for a moment.
      if (!this.absent) {
        this.absent = true
        this.stir()
        return
      }
      if (this.told === String(error)) return
    }
    if (unreadable) this.told = String(error)
    this.options.onError(error)
  }

  /** Watches the directory of the file, and that of what it links to; these may change. */
  private async follow(): Promise<void> {
    const wanted = new Set([dirname(this.file)])
    try {
      wanted.add(dirname(await realpath(this.file)))
    } catch {
      // Not there now; the poll looks again.
    }
    if (this.closed) return
    for (const [directory, watcher] of this.watches) if (!wanted.has(directory)) this.unwatch(directory, watcher)
    for (const directory of wanted) if (!this.watches.has(directory)) this.watchDirectory(directory)
  }

  private watchDirectory(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, () => this.stir())
      watcher.on('error', () => this.unwatch(directory, watcher))
      this.watches.set(directory, watcher)
    } catch {
      // A file system without notifications, or no watches left: the poll has to do.
    }
  }

  private unwatch(directory: string, watcher: FSWatcher): void {
    watcher.close()
    this.watches.delete(directory)
  }
}
