import { STATUS_CODES } from 'node:http'
import { type Field, PROBLEM_TYPE, type ProblemStatus, problem } from 'headgate/http'

/** What may be asked of the gateway; `CONNECT` and `TRACE` are not carried to upstreams. */
export const ALLOW: Field = ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']

/** The head of an answer of our own, names and values in turns. */
export function problemFields(body: string, ours: readonly Field[], closing: boolean): string[] {
  const fields = ['Content-Type', PROBLEM_TYPE, 'Content-Length', String(Buffer.byteLength(body))]
  for (const [name, value] of ours) fields.push(name, value)
  if (closing) fields.push('Connection', 'close')
  return fields
}

/** A whole answer as text, for a connection that node's server gave up. */
export function rawAnswer(status: ProblemStatus, detail: string, ours: readonly Field[] = []): string {
  const body = problem(status, detail)
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${new Date().toUTCString()}\r\n`
  const fields = problemFields(body, ours, true)
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
  return `${head}\r\n${body}`
}

/**
 * The fields that let a page of another origin read a refusal. They say who may read, so the answer
 * varies with the origin even where this one may not.
 */
export function corsFields(origins: readonly string[], origin: string | undefined, ours: readonly Field[]): Field[] {
  if (origins.length === 0) return []
  const any = origins.includes('*')
  const vary: Field[] = any ? [] : [['Vary', 'Origin']]
  if (!any && (origin === undefined || !origins.includes(origin))) return vary
  const exposed = ours.map(([name]) => name).join(', ')
  const fields: Field[] = [['Access-Control-Allow-Origin', any ? '*' : (origin as string)], ...vary]
  if (exposed !== '') fields.push(['Access-Control-Expose-Headers', exposed])
  return fields
}
