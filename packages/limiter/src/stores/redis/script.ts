import { DECIDE_LUA, DECIDE_SHA1 } from '../../script/decide.generated.ts'

/** A script of the store's: its text, and how each call ends (the build for tests adds its clock). */
export interface Script {
  readonly text: string
  readonly sha1: string
  readonly extraArgs: () => readonly string[]
  /** Whether it goes by the server's clock; only then do its instants come as this process's clock goes. */
  readonly onServerClock: boolean
}

export const DECIDE: Script = { text: DECIDE_LUA, sha1: DECIDE_SHA1, extraArgs: () => [], onServerClock: true }
