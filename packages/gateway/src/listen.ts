import { existsSync } from 'node:fs'
import { lstat, unlink } from 'node:fs/promises'
import { type AddressInfo, connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import type { ListenAddress } from '@headgate/rules'
import { HeadgateError } from 'headgate'

/**
 * Makes a server listen. A socket file that a dead process left behind is replaced.
 * @param what names the server in errors, such as `gateway`
 * @returns the address as text: `http://host:port` with the port that was given, or `unix:path`
 * @throws HeadgateError HEADGATE_LISTEN naming the address and what to do
 */
export async function listen(server: Server, address: ListenAddress, what: string): Promise<string> {
  try {
    await attempt(server, address)
  } catch (error) {
    const stale = address.kind === 'unix' && codeOf(error) === 'EADDRINUSE' && (await isStale(address.path))
    if (!stale) throw listenError(error, address, what)
    await unlink(address.path)
    await attempt(server, address).catch((again) => {
      throw listenError(again, address, what)
    })
  }
  return addressText(server.address() as AddressInfo | string)
}

function attempt(server: Server, address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Whether nobody listens on a socket file any more. */
async function isStale(path: string): Promise<boolean> {
  const file = await lstat(path).catch(() => undefined)
  if (!file?.isSocket()) return false
  return new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(false)
    })
    probe.once('error', (error) => resolve(codeOf(error) === 'ECONNREFUSED'))
  })
}

function addressText(address: AddressInfo | string): string {
  if (typeof address === 'string') return `unix:${address}`
  return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`
}

const ADVICE: Record<string, string> = {
  EADDRINUSE: 'another process listens there; stop it or change the address',
  EADDRNOTAVAIL: 'this machine has no such address; write 127.0.0.1, or only the port for all addresses',
  ENOTFOUND: 'the host is not known; write an IP address',
}

/** What to do; undefined where nobody but the system knows. Of a folder that is missing the system says EACCES. */
function adviceOn(code: string, address: ListenAddress): string | undefined {
  if (address.kind === 'tcp') return code === 'EACCES' ? 'this user may not; choose a port from 1024 up' : ADVICE[code]
  const folder = dirname(address.path)
  if (!existsSync(folder)) return `there is no folder ${folder}; create it`
  return code === 'EACCES' ? `this user may not write into ${folder}; change its permissions` : ADVICE[code]
}

function listenError(error: unknown, address: ListenAddress, what: string): HeadgateError {
  const code = codeOf(error)
  const place = address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${address.port}`
  const known = adviceOn(code, address)
  const advice = known === undefined ? (error instanceof Error ? error.message : String(error)) : `${known} (${code})`
  return new HeadgateError('HEADGATE_LISTEN', `${what}: cannot listen on ${place}: ${advice}`, { cause: error })
}

function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? ''
}
