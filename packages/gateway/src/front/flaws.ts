import type { IncomingMessage } from 'node:http'
import { type NormalizedTarget, normalizePath, type PathSettings } from '@headgate/rules'
import type { Field, ProblemStatus } from 'headgate/http'
import { ALLOW } from './answers.ts'
import type { RequestHead } from './request-head.ts'

/** Why a request cannot be served, before any rule is asked; nothing is charged for it. */
export interface Flaw {
  readonly status: ProblemStatus
  readonly detail: string
  readonly fields?: readonly Field[]
}

export function flaw(status: ProblemStatus, detail: string): Flaw {
  return { status, detail }
}

/** What no rule and no path can make right. */
export function flawOfHead(req: IncomingMessage, head: RequestHead): Flaw | undefined {
  const { httpVersionMajor: major, httpVersionMinor: minor } = req
  if (major === 0) return flaw(400, 'The request names no version of HTTP.')
  if (major > 1) return flaw(505, 'Only HTTP/1.1 and HTTP/1.0 are spoken here.')
  if (req.method === 'TRACE') return { ...flaw(405, 'TRACE requests are not forwarded.'), fields: [ALLOW] }
  if (head.misframed) return flaw(400, 'The only Transfer-Encoding that is understood is chunked.')
  if (head.hosts > 1) return flaw(400, 'The request has more than one Host field.')
  if (head.hosts === 0 && minor > 0) return flaw(400, 'The request has no Host field.')
  return undefined
}

type GoodTarget = NormalizedTarget & { ok: true }

/** The target as it is matched and forwarded. */
export function readTarget(req: IncomingMessage, paths: PathSettings): GoodTarget | Flaw {
  const target = normalizePath(req.url as string, paths)
  return target.ok ? target : flaw(400, `The request's target is refused: ${target.problem}.`)
}
