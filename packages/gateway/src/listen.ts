import { lstat, unlink } from 'node:fs/promises'
import { type AddressInfo, connect, type Server } from 'node:net'
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
  EACCES: 'this user may not; choose a port from 1024 up, or a folder that is writable',
  EADDRNOTAVAIL: 'this machine has no such address; write 127.0.0.1, or only the port for all addresses',
  ENOENT: 'the folder of the socket does not exist; create it',
  ENOTFOUND: 'the host is not known; write an IP address',
}

function listenError(error: unknown, address: ListenAddress, what: string): HeadgateError {
  const code = codeOf(error)
  const place = address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${address.port}`
  const advice = ADVICE[code] ?? (error instanceof Error ? error.message : String(error))
  const known = code in ADVICE ? ` (${code})` : ''
  return new HeadgateError('HEADGATE_LISTEN', `${what}: cannot listen on ${place}: ${advice}${known}`, { cause: error })
}

function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? ''
}
