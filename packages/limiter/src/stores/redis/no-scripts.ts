import { StoreFault } from '../../store.ts'

/** What servers say that do not have a command, or not for this user. */
const ABSENT = /unknown (?:sub)?command|not (?:allowed|supported)|disabled/i
const FORBIDDEN = /NOPERM/

let warned = false

/**
 * Runs what a server must be able to do so that limits can be kept there. One that cannot is no outage that passes:
 * the process is told once which promise is void.
 */
export async function required(command: string, sent: Promise<unknown>): Promise<unknown> {
  try {
    return await sent
  } catch (error) {
    // What was sent along stands in it too, the whole script.
    const message = (error as Error).message.replace(/, with args beginning with.*/s, '')
    const absent = ABSENT.test(message)
    if (!absent && !FORBIDDEN.test(message)) throw error
    const problem = `the server refuses ${command} (${message}): it keeps no limits, and each process counts for itself by onStoreFailure; allow TIME, SCRIPT LOAD and EVALSHA, or use a server that has them`
    if (!warned) process.emitWarning(problem, { type: 'HeadgateWarning', code: 'HEADGATE_NO_SCRIPTS' })
    warned = true
    throw absent ? new StoreFault('script', problem, true, { cause: error }) : error
  }
}
