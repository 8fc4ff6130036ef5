import { type StoreErrorKind, StoreFault } from '../../store.ts'

/**
 * What Redis says when it refuses, by the word that its error begins with, or that stands inside the
 * text of a script's error. All of these are said before anything was written.
 */
const REFUSALS: Record<string, StoreErrorKind> = {
  NOSCRIPT: 'script',
  LOADING: 'loading',
  READONLY: 'readonly',
  MASTERDOWN: 'readonly',
  NOREPLICAS: 'readonly',
  MISCONF: 'readonly',
  OOM: 'full',
  BUSY: 'busy',
  UNKILLABLE: 'busy',
  NOAUTH: 'auth',
  WRONGPASS: 'auth',
  NOPERM: 'permission',
  CLUSTERDOWN: 'cluster',
  TRYAGAIN: 'cluster',
  MOVED: 'cluster',
  ASK: 'cluster',
  CROSSSLOT: 'cluster',
}

const WORDS = new RegExp(`\\b(${Object.keys(REFUSALS).join('|')})\\b`)
const CONNECTION =
  /ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOENT|[Cc]onnection|[Ss]ocket|[Ss]tream|closed|offline|MaxRetries|max retries/

/** Classifies what a client rejected a command with. */
export function faultOf(error: unknown): StoreFault {
  const message = error instanceof Error ? error.message || error.name : String(error)
  const word = WORDS.exec(message)?.[1]
  if (word !== undefined) return new StoreFault(REFUSALS[word] as StoreErrorKind, message, true, { cause: error })
  const kind = CONNECTION.test(`${error instanceof Error ? error.name : ''} ${message}`) ? 'connection' : 'other'
  return new StoreFault(kind, message, false, { cause: error })
}

export function isNoScript(fault: StoreFault): boolean {
  return fault.kind === 'script'
}
