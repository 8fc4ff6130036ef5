import { type StoreErrorKind, StoreFault } from '../../store.ts'

/** What Redis says when it refuses. All of these are said before anything was written. */
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

/** The word that an error begins with, or that stands, behind a hyphen, inside the text of a script's error. */
const CODE = new RegExp(`(?:^|-)(${Object.keys(REFUSALS).join('|')})\\b`)

/** Refusals that have no code of their own. */
const PHRASES: readonly (readonly [phrase: string, kind: StoreErrorKind])[] = [
  ['max number of clients', 'connection'],
  ['invalid password', 'auth'],
  ['executing the script can', 'permission'],
  ['cript killed by user', 'script'],
]

/** Every reply of a server's begins with its code; clients write sentences. */
const REPLY = /^[A-Z][A-Z0-9]+ /

/** Classifies what a client rejected a command with. */
export function faultOf(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error
  const message = textOf(error)
  const code = CODE.exec(message)?.[1]
  const refusal = code === undefined ? phraseIn(message) : REFUSALS[code]
  if (refusal !== undefined) return new StoreFault(refusal, message, true, { cause: error })
  return new StoreFault(REPLY.test(message) ? 'other' : 'connection', message, false, { cause: error })
}

/** Why there is no connection. */
export function downFault(error: Error | undefined, notRun: boolean): StoreFault {
  const fault = faultOf(error ?? new Error('the connection was closed'))
  const kind = fault.kind === 'other' || fault.kind === 'timeout' ? 'connection' : fault.kind
  return new StoreFault(kind, fault.message, notRun, { cause: error })
}

export function isNoScript(fault: StoreFault): boolean {
  return fault.message.includes('NOSCRIPT')
}

function phraseIn(message: string): StoreErrorKind | undefined {
  return PHRASES.find(([phrase]) => message.includes(phrase))?.[1]
}

/** An AggregateError (one for each address tried) has an empty message of its own. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const first = error instanceof AggregateError ? (error.errors[0] as Error | undefined) : undefined
  return first?.message || error.message || error.name
}
