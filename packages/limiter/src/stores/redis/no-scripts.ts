import { StoreFault } from '../../store.ts'
import { faultOf } from './faults.ts'
import { warnOnce } from './warn-once.ts'

/** What servers say that do not have a command. */
const ABSENT = /unknown (?:sub)?command|not (?:allowed|supported)|disabled/i

/** Runs what a server must be able to do so that limits can be kept there. */
export async function required(command: string, sent: Promise<unknown>): Promise<unknown> {
  try {
    return await sent
  } catch (error) {
    throw refusalOf(command, error)
  }
}

/**
 * The fault of a command that was refused. A server that does not have it, or not for this user, is no outage that
 * passes: the process is told once which promise is void.
 */
export function refusalOf(command: string, error: unknown): StoreFault {
  const fault = faultOf(error)
  const { kind, message, notRun } = fault
  const absent = (kind === 'other' || kind === 'connection') && !notRun && ABSENT.test(message)
  if (!absent && kind !== 'permission') return fault
  // What was sent along stands in it too, the whole script.
  const why = message.replace(/, with args beginning with.*/s, '')
  const problem = `the server refuses ${command} (${why}): it keeps no limits, and each process counts for itself by onStoreFailure; allow TIME, SCRIPT LOAD and EVALSHA, the commands of the script and the keys of the prefix, or use a server that has them`
  warnOnce('HEADGATE_NO_SCRIPTS', problem)
  return new StoreFault(absent ? 'script' : kind, problem, true, { cause: error })
}
